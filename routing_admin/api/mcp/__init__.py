"""The agents' tools over MCP."""
