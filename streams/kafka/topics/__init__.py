"""Checks that the topics are what they must be, and stay so."""
