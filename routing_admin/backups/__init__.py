"""How is an installation saved, and brought back? Both databases, every artifact and what they add up to."""
