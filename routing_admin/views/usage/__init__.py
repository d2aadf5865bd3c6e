"""What was used, and what did it cost? By agent, route, provider, model and day, as a page and as CSV."""
