"""Models' descriptions of files, stored so that each is requested once and prompt prefixes stay the same."""
