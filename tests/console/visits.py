"""Helpers for page tests: a page's query count, the undo that a response offers, and the newest revision."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from routing_admin.configuration import snapshot
from routing_admin.models import Installation, Revision
from routing_admin.platform.databases.router import LOGS
from tests.console.page import Page

STAMP = f'FROM "{Installation._meta.db_table}"'
"""Part of a query that runs once a second, to check whether another process changed the configuration."""


def count_queries(
    client: Client, address: str, *, using: str = DEFAULT_DB_ALIAS, post: dict[str, Any] | None = None
) -> int:
    """Return how many queries a page makes to one database. `query_counts` explains how they are counted."""
    return query_counts(client, address, post=post)[(DEFAULT_DB_ALIAS, LOGS).index(using)]


def query_counts(client: Client, address: str, *, post: dict[str, Any] | None = None) -> tuple[int, int]:
    """With warm caches, return how many queries a page makes to the main database and how many to the log.

    If `post` is given, it is sent as a form. The configuration snapshot is refreshed first. Queries that contain
    `STAMP` are not counted, since they depend on the time.
    """

    def visit() -> int:
        return (client.get(address) if post is None else client.post(address, post)).status_code

    visit()
    snapshot.refresh()
    with (
        CaptureQueriesContext(connections[DEFAULT_DB_ALIAS]) as queries,
        CaptureQueriesContext(connections[LOGS]) as log_queries,
    ):
        assert visit() == 200
    return sum(STAMP not in query["sql"] for query in queries), len(log_queries)


def response_text(answer: Any) -> str:
    return str(answer.content.decode())


def offered_undo(client: Client, answer: Any) -> int:
    """Return the revision that the newest toast of a response offers to undo."""
    page = Page(client.get(answer["Location"]) if answer.status_code == 302 else answer)
    undone = [
        control.attributes["action"] or ""
        for control in page.controls
        if control.tag == "form" and control.button("Undo")
    ]
    return int(undone[-1].split("/")[2])


def newest_revision() -> int:
    """Return the number of the newest revision, or 0 if there is none."""
    return Revision.objects.values_list("number", flat=True).first() or 0
