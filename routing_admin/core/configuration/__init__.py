"""What is the configuration? One immutable value: its parts, its JSON, what must hold in it, what differs."""
