"""How is an installation saved and restored? Both databases, every artifact, and a manifest."""
