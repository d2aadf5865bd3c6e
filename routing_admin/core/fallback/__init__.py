"""The fallback loop, which decides which candidate is called next, and when.

Read `table`, `policy` and `run` first, then `cooldown` and `key_pools`.
"""
