"""How does the configuration live in rows? Read and written whole, one revision per change, one snapshot in use."""
