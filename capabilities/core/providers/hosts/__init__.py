"""Which hosts are well known, and what do we know of each? By region; `presets.py` combines them."""
