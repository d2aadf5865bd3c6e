"""The embedded provider, whose answer is a description of the request."""
