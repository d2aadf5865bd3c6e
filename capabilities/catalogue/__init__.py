"""Data: what known models read and write, for `capabilities/core/catalogue.py`. How it is made: `build.py`."""
