"""Delivery of stored files to an agent's model: the `get_artifact` tool, its content router, and tool definitions."""
