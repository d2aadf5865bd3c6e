"""Texts that a model reads in place of a file: descriptions, parsing them, excerpts and phrases."""
