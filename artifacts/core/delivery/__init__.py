"""Delivery of a stored file to an agent's model: get_artifact, its router and the tool definitions."""
