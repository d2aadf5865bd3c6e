"""Text that a model reads in place of a file: writing and parsing descriptions, excerpts and phrases."""
