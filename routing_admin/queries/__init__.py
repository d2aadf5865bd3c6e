"""What do the pages of this package need to know? Every read of rows for them, one module per page family."""
