"""Detection of a file's type, kind and encoding by its metadata and bytes."""
