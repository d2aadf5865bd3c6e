"""Delivery of stored files to an agent's model: the tool get_artifact, its router, and the tool definitions."""
