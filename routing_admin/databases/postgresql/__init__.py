"""How does the program meet PostgreSQL? Django's own engine, but for waits, pools, and text that it cannot keep."""
