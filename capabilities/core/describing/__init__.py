"""Prompts, limits and quoting for a model that describes a file for another model."""
