"""Endpoints for artifacts and messages in the agents' API."""
