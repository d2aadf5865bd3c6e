"""Well-known hosts by region. `presets.py` combines them."""
