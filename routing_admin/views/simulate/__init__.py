"""What would happen to a request? Simulated with scripted outcomes, or sent for real."""
