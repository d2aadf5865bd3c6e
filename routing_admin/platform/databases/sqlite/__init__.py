"""Django's SQLite engine with lock timeouts and the same rules for text as PostgreSQL."""
