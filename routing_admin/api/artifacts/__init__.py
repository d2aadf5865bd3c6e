"""The agents' API for artifacts and messages."""
