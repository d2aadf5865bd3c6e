"""One module per command. `manage.py COMMAND --help` describes it."""
