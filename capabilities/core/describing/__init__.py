"""Prompts, limits and quoting for descriptions of files by another model."""
