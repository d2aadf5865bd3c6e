"""What is the configuration? One immutable value: its parts, its JSON, what must be so in it, what differs between two."""
