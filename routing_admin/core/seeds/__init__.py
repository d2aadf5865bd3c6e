"""The seed programs' names for parts of this program; no other module imports them."""
