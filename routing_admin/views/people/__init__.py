"""Who comes in, as what, and in which language? Signing in, links, users, one's own password."""
