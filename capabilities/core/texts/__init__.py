"""Text that models receive in place of files or next to them, and the parser that reads it back."""
