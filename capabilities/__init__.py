"""Providers, model services, agents and the protocols they speak."""
