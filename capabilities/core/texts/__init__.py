"""Text that models receive in place of files or beside them, and the parser that reads it back."""
