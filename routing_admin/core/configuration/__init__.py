"""The configuration as one immutable value, with its JSON form, checks and differences."""
