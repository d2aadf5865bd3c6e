"""The project's management commands."""
