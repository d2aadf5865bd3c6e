"""The embedded provider, which answers with a description of what it received."""
