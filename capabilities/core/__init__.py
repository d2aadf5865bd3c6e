"""Values and rules in plain Python, with the standard library only."""
