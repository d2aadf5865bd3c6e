"""The demo of a new installation: every page has content, and no key is needed."""
