"""Data types and rules in modules that import only the standard library and each other."""
