"""What happens: agents, rules, clients, HTTP and the command line. May import `schemas` and `tables`."""
