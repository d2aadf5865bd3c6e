#!/usr/bin/env python
"""Runs the commands of routing_admin: `python manage.py help` lists them."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
