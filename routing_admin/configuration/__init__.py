"""Store the configuration in database rows, record each change as a revision, and keep a snapshot for requests."""
