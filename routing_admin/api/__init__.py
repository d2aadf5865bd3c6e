"""The agents' API under `/api/v1`, with one format of errors, and MCP."""
