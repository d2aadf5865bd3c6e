"""The agents' API under `/api/v1`, with one error format, and MCP."""
