"""What is the configuration? One immutable value: its parts, its JSON, its checks, its differences."""
