"""Of which parts are pages made? Template tags, usable from every app."""
