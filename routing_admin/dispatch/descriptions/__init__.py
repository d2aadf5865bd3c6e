"""Models' descriptions of files. They are stored, so that each is requested once and prompt prefixes stay the same."""
