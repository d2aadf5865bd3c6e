"""How does the program meet SQLite? Django's own engine, but for how long a statement waits."""
