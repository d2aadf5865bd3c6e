"""The seed programs' names for parts of this one; no other module imports them."""
