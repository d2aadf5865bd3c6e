"""Providers, model services, agents, and the providers' wire protocols."""
