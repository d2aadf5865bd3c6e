"""The demo that an empty database starts with (CONTRACT §7): every page shows something, and no key is needed."""
