#!/usr/bin/env python
"""Run the commands of routing_admin: `python manage.py help` lists them."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
    from django.core.management import execute_from_command_line

    from routing_admin.platform.garbage import collect_rarely

    collect_rarely()
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:  # Django's own commands should also end with one line if the database is unavailable.
        from routing_admin.platform.databases.explaining import explain_failure

        line = explain_failure(error)
        if line is None:
            raise
        sys.exit(f"Error: {line}")
