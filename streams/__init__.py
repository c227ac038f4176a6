"""The layer of behaviour: agents, rules, clients, HTTP and the command line. It may import `schemas` and `tables`."""
