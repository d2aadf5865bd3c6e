"""The demo data of a new installation, which gives every page content and needs no provider key."""
