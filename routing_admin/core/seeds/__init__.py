"""The interface of the seed programs, under their names, implemented by this program. No other package imports it."""
