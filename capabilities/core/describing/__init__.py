"""Prompts, limits and quoting for file descriptions that one model writes for another."""
