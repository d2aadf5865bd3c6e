"""Who can read what? Values and rules in plain Python, importing nothing but the standard library."""
