"""The demo of a new installation. It fills every page and needs no provider key."""
