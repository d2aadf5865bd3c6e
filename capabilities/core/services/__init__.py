"""Model services and agents, with their input and output capabilities."""
