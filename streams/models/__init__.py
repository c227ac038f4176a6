"""Models: embedding models, and chat models that rate exchanges and refine memories."""
