"""Who can read what: providers, model services, agents and the protocols they speak."""
