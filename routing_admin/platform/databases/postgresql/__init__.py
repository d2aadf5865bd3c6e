"""How does the program use PostgreSQL? Django's engine, except for waits, pools, and text it cannot store."""
