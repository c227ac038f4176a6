"""What tests are made of: brokers, workers, models and messages."""
