"""Data types and rules in plain Python, which import only the standard library."""
