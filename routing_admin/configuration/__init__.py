"""Store the configuration in database rows, record each change as a revision, and keep the snapshot for requests."""
