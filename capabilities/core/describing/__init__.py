"""Prompts, limits and quoting for one model that describes a file for another."""
