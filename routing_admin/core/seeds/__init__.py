"""The interface of the seed programs, by their names, over this program's parts; no other module imports it."""
