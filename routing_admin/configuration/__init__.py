"""Store the configuration in database rows, with a revision for each change and a snapshot that requests use."""
