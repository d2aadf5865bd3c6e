"""Find the price of a model at a provider at a given time."""
