"""Demo data for a new installation. It gives every page something to show and needs no provider key."""
