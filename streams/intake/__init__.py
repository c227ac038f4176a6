"""Intake: messages from the topic `conversations` become windows, exchanges and promotions."""
