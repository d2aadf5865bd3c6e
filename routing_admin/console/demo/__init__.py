"""The demo of a new installation. It gives every page content and needs no provider key."""
