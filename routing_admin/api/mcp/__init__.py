"""How do agents call the tools over MCP?"""
