"""Which parts are pages made of? Template tags for every app."""
