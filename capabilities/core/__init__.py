"""Who can read what: values and rules in plain Python, importing nothing but the standard library."""
