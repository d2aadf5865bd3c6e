"""Store the configuration in database rows with a revision per change, and keep the snapshot that requests use."""
