"""A visit to a page: how many queries it takes, what the answer says, and which change it offers to undo."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from routing_admin.configuration import snapshot
from routing_admin.models import Installation

STAMP = f'FROM "{Installation._meta.db_table}"'
"""In the query that asks once a second whether another process changed something."""


def queries_of(
    client: Client, address: str, *, using: str = DEFAULT_DB_ALIAS, post: dict[str, Any] | None = None
) -> int:
    """How many queries a page takes of one database once the process is warm; `post` is sent where it is given.

    The snapshot is the newest beforehand, and the look at its stamp, due or not, is left out with every other read of
    that one row: how long the page takes makes no difference.
    """

    def visit() -> int:
        return (client.get(address) if post is None else client.post(address, post)).status_code

    visit()
    snapshot.refresh()
    with CaptureQueriesContext(connections[using]) as caught:
        assert visit() == 200
    return sum(STAMP not in query["sql"] for query in caught)


def text_of(answer: Any) -> str:
    """The page as text."""
    return str(answer.content.decode())


def undo_in(client: Client, answer: Any) -> int:
    """The revision that the newest toast of an answer offers to undo."""
    page = text_of(client.get(answer["Location"]) if answer.status_code == 302 else answer)
    return int(page.split("/undo/")[-1].split("/")[0])
