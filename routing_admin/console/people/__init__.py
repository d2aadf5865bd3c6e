"""Users: sign-in and sign-out, roles, sessions, tokens, and linked external accounts."""
