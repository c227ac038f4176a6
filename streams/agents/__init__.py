"""The agents: each turns a batch of records of one partition into what follows from them."""
