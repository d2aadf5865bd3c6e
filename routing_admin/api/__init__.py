"""The API for agents under `/api/v1`, with one error format for all endpoints, and the MCP server."""
