"""Value types and rules for files, in plain Python without Django."""
