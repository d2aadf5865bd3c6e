"""Model services and agents, and what each can read and write."""
