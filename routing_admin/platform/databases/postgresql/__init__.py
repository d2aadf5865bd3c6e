"""Django's PostgreSQL engine with lock timeouts, pools, reconnection, and text that PostgreSQL can store."""
