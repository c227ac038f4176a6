"""Clients of the broker, as aiokafka has them and as we need them."""
