"""Management commands, one per module; `routing-admin COMMAND --help` describes a command."""
