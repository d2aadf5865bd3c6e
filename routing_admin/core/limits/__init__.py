"""Limits for agents: request rates, budgets and concurrent calls."""
