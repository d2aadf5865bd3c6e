"""Values and rules in plain Python that import only the standard library."""
