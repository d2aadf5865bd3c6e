"""Limits on agents: request rates, budgets and concurrent calls."""
