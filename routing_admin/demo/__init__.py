"""What stands in a new installation? A demo (CONTRACT §7): every page shows something, and no key is needed."""
