"""Plan a request, prepare it for each candidate, and send it; simulations share the same code."""
