"""Rates, budgets and concurrency that an agent may use."""
