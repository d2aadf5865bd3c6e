"""The embedded provider, which answers with a description of the request."""
