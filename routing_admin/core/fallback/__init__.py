"""Who is asked next, and when? In reading order: `table`, `policy`, `run`, then `waits` and `cooldown`."""
