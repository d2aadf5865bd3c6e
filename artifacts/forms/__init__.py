"""What do people fill in about a file? Checked by the action that it leads to."""
