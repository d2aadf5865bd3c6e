"""How does the program use SQLite? Django's engine, except for how long a statement waits."""
