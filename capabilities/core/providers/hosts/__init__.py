"""Well-known hosts, by where they are; `presets.py` puts them together."""
