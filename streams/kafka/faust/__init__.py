"""What of Faust is overridden."""
