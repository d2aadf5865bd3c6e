"""Which hosts are well known, and what is known of each? By where they are; `presets.py` puts them together."""
