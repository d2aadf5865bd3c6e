"""Task routes: the list, the chain editor with its draft, error policies, and aliases."""
