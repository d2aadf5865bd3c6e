"""What became of each request? The log with its search, the story of one, and a file sent for real."""
