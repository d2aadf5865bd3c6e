"""What do known models read and write? Data for `core/providers/catalogue.py`; how it is made: `build.py`."""
