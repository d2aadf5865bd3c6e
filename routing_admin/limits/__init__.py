"""Enforce the limits of holders: agents, their keys, teams, projects and end users.

The database contains a ledger for each limit. A process draws a share of the limit from the ledger, and its calls
reserve from this share in memory, so that most calls need no query.
"""
