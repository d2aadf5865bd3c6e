"""Enforce limits for their holders: agents, agent keys, teams, projects and end users.

A ledger in the database records how much of each limit has been drawn. Each process draws a share of the limit, and
calls reserve from this share in memory, so that most calls need no database query.
"""
