"""Rules for signing in with an external account."""
