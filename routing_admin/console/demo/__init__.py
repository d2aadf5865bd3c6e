"""What does a new installation contain? A demo: every page shows something, and no key is needed."""
