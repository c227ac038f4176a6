"""Clients of the broker, made with aiokafka: their options, producers, readers, and the creation of topics."""
