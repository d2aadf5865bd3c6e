"""Which models answer which task? The list, the editor with its draft, and how a route treats errors."""
