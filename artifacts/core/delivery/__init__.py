"""How does a stored file reach an agent's model? get_artifact, the seeds' router, the tools' definitions."""
