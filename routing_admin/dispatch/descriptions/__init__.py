"""File descriptions that models write.

Each description is stored, so that it is requested only once and prompt prefixes stay the same.
"""
