"""Data: what known models read and write, for `capabilities/core/providers/catalogue.py`. How it is made: `build.py`."""
