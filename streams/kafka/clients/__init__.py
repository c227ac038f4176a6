"""aiokafka's clients of the broker, and our changes to them."""
