"""Routing rules in plain Python: configuration, planning, fallback, limits and file formats."""
