"""The configuration as one immutable value, with its JSON form, validation and differences."""
