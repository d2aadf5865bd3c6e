"""One module per command. `routing-admin COMMAND --help` describes it."""
