"""Data: what known models read and write, for `core/providers/catalogue.py`. How it is made: `build.py`."""
