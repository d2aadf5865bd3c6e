"""Text that replaces files for models: writing and parsing of descriptions, excerpts and phrases."""
