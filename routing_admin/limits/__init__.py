"""Enforce the limits of agents: shares in memory, drawn from a ledger in the database."""
