"""Find what a model costs at a provider at a given time."""
