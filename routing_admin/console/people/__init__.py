"""Users: sign-in and sign-out, roles, sessions, tokens, and external accounts linked for sign-in."""
