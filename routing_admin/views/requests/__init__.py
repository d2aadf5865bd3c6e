"""What happened to each request? The log with its search, one request in detail, and a file sent for real."""
