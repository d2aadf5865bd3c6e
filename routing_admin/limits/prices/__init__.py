"""Find a model's price at a provider at a given time."""
