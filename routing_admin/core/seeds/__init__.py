"""The seed programs' interface, with their names, implemented by this program. No other module imports it."""
