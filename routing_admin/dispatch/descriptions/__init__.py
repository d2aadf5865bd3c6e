"""File descriptions written by models.

Each is stored, so that it is requested only once and prompt prefixes stay the same.
"""
