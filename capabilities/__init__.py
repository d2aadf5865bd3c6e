"""Providers, model services, agents, and the wire protocols of providers."""
