"""Who signs in, in which role and language? Sign-in, links, users, one's own password."""
