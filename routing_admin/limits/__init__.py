"""Enforce the limits on agents.

The database has a ledger of each limit. A process draws a share of the limit from the ledger and reserves from this
share in memory, so that most calls need no query.
"""
