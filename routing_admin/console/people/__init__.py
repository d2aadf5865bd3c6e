"""People: signing in and out, users and roles, sessions, tokens, and accounts linked for sign-in."""
