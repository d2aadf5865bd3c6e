"""Detection of a file's type, kind and text encoding from its metadata and bytes."""
