"""Store the configuration in rows, with a revision per change and a snapshot in use."""
