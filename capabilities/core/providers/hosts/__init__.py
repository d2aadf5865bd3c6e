"""Tables of well-known provider hosts by region, which `presets.py` combines."""
