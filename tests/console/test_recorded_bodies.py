"""Recorded message bodies are hidden from viewers, whose pages do not even query them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from routing_admin.models import AttemptLog, RequestLog
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import response_text

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

MARKER = "meet-me-at-noon-4711"
COLUMN = '"body"'
PAGES = ["/", "/requests/", "/requests/?q=agent:text-agent", "/requests/req_kept/", "/simulate/?request=req_kept"]
"""Every page that reads the request log."""


@pytest.fixture
def key(key: str) -> str:
    """An agent's key. The request log contains one request by the agent, with its recorded body."""
    message = {"role": "user", "content": [{"type": "text", "text": MARKER}]}
    row = RequestLog.objects.create(
        id="req_kept",
        started_at=timezone.now(),
        surface="chat",
        outcome="ok",
        status=200,
        agent="text-agent",
        task_type="planning",
        body={"messages": [message]},
    )
    AttemptLog.objects.create(request=row, position=0, provider="echo", outcome="ok", status=200, at=row.started_at)
    return key


@contextmanager
def log_statements() -> Iterator[list[str]]:
    statements: list[str] = []
    with CaptureQueriesContext(connections["logs"]) as caught:
        yield statements
    statements += [query["sql"] for query in caught.captured_queries]


def context_values(answer: Any) -> str:
    """Return, as text, everything in the template contexts, including the fields of rows that were loaded."""
    flat = answer.context.flatten() if hasattr(answer.context, "flatten") else {}
    for layer in answer.context or ():
        flat |= layer.flatten() if hasattr(layer, "flatten") else dict(layer)
    return " ".join(repr(vars(value)) if hasattr(value, "__dict__") else repr(value) for value in flat.values())


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
@pytest.mark.parametrize("address", PAGES)
def test_viewer_pages_neither_query_nor_contain_a_recorded_body(
    key: str, address: str, headers: Any, viewer: Client
) -> None:
    with log_statements() as statements:
        answer = viewer.get(address, headers=headers)
    assert answer.status_code == 200
    assert statements
    assert not [sql for sql in statements if COLUMN in sql]
    assert MARKER not in context_values(answer) + response_text(answer)


def test_template_without_a_permission_check_causes_no_body_query_for_a_viewer(key: str, viewer: Client) -> None:
    """The template gets None for the body."""
    answer = viewer.get("/requests/req_kept/")
    with log_statements() as statements:
        assert answer.context["row"].body is None
    assert statements == []


def test_viewer_sees_the_role_required_to_read_the_message(key: str, viewer: Client) -> None:
    """A viewer's page does not say whether the message was recorded, because the message is never queried."""
    page = Page(viewer.get("/requests/req_kept/"))
    assert page.shows("shown to editors and administrators only")
    assert not page.shows("not recorded")
    assert not page.shows("The recorded message")


@pytest.mark.parametrize("address", ["/requests/req_kept/", "/simulate/?request=req_kept"])
def test_administrator_can_read_recorded_messages(key: str, address: str, admin: Client) -> None:
    with log_statements() as statements:
        answer = admin.get(address)
    assert [sql for sql in statements if COLUMN in sql]
    assert Page(answer).shows(MARKER)


def test_request_list_queries_no_body_for_any_role(key: str, admin: Client) -> None:
    with log_statements() as statements:
        assert MARKER not in response_text(admin.get(reverse("requests")))
    assert not [sql for sql in statements if COLUMN in sql]


def test_agent_timeline_queries_no_body(key: str) -> None:
    agent = {"authorization": f"Bearer {key}"}
    with log_statements() as statements:
        answer = Client().get("/api/v1/requests/req_kept", headers=agent)
    assert answer.status_code == 200
    assert answer.json()["attempts"]
    assert MARKER not in response_text(answer)
    assert not [sql for sql in statements if COLUMN in sql]
    RequestLog.objects.filter(pk="req_kept").update(agent="vision-agent")
    assert Client().get("/api/v1/requests/req_kept", headers=agent).status_code == 404
