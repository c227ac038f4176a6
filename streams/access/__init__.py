"""Who may ask for what: the same rule for every way in."""
