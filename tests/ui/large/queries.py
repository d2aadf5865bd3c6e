"""`python -m tests.ui.large.queries FOLDER ADDRESS…`: list the pages of an installation that make too many queries."""

from __future__ import annotations

import os
import sys

MAX_QUERIES = 12
"""The maximum number of queries that a page may make to the two databases together."""


def main(folder: str, addresses: list[str]) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "routing_admin.settings", "ROUTING_ADMIN_DATA_DIR": folder}
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.test import Client

    from tests.console.visits import count_queries

    admin = Client(headers={"host": "localhost"})
    admin.force_login(get_user_model().objects.get(username="admin"))
    for address in addresses:
        count = sum(count_queries(admin, address, using=database) for database in ("default", "logs"))
        if count > MAX_QUERIES:
            print(f"{address}: {count} queries")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
