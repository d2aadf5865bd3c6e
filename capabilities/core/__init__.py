"""Who can read what? Values and rules in plain Python, with only the standard library."""
