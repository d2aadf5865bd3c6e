"""An agent lists its own requests page by page, with filters, cursors and files.

Administrators see the requests of all agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from capabilities.models import Agent
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS
from tests.cast import AgentProgram, create_key, create_token
from tests.gateway.plane import PNG_URL, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
OLD = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def old_key(demo: None) -> None:
    """Make every agent older than the requests in these tests, and empty the request log."""
    Agent.objects.update(created_at=OLD)
    AttemptLog.objects.all().delete()
    RequestLog.objects.all().delete()


def make_log_row(number: int, agent: str = "text-agent", **values: Any) -> RequestLog:
    """Create a logged request that started `number` minutes ago."""
    usual = {"outcome": "ok", "status": 200, "surface": "v1", "task_type": "planning", "asked_model": "task:planning"}
    started_at = timezone.now() - timedelta(minutes=number)
    return RequestLog.objects.create(id=f"req_{number}", started_at=started_at, agent=agent, **{**usual, **values})


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [request["id"] for request in answer.json()["requests"]]


def list_pages(program: AgentProgram, **filters: Any) -> Iterator[list[str]]:
    """Yield the request ids of each page, following the cursors."""
    cursor = ""
    while True:
        answer = program.get("/requests", **filters, **({"cursor": cursor} if cursor else {}))
        yield ids(answer)
        cursor = answer.json()["nextCursor"]
        if cursor is None:
            return


def test_listed_request_equals_the_single_request(old_key: None, text_agent: AgentProgram) -> None:
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    body = {"model": "task:design", "messages": [{"role": "user", "content": content}]}
    answer = post(text_agent.key, body)
    (entry,) = text_agent.get("/requests").json()["requests"]
    detail = text_agent.get(f"/requests/{answer.headers['x-request-id']}").json()
    assert (entry["id"], entry["agent"]) == (answer.headers["x-request-id"], "text-agent")
    assert (entry["model"], entry["taskType"]) == ("task:design", "design")
    assert (entry["attempts"], entry["answeredBy"]["model"]) == (len(detail["attempts"]), "echo-vision")
    assert entry["usage"]["completionTokens"] == answer.json()["usage"]["completion_tokens"]
    (file,) = entry["files"]
    assert (file["kind"], file["mimeType"], file["outcome"]) == ("image", "image/png", "native")
    shared_fields = set(entry) - {"attempts", "usage", "files"}
    assert {name: entry[name] for name in shared_fields} == {name: detail[name] for name in shared_fields}


def test_pages_list_every_request_once(old_key: None, text_agent: AgentProgram) -> None:
    """Requests may have the same time, and new requests may be logged while pages are read."""
    for number in range(7):
        make_log_row(number)
    RequestLog.objects.filter(pk__in=["req_3", "req_4"]).update(started_at=timezone.now() - timedelta(minutes=3))
    ids_seen: list[str] = []
    for page in list_pages(text_agent, limit=2):
        ids_seen += page
        RequestLog.objects.filter(pk="req_late").delete()
        RequestLog.objects.create(id="req_late", started_at=timezone.now(), agent="text-agent", outcome="ok")
    # If two requests have the same time, the one with the higher id is listed first.
    assert ids_seen == ["req_0", "req_1", "req_2", "req_4", "req_3", "req_5", "req_6"]


def test_agent_sees_only_requests_of_its_own_lifetime(old_key: None, text_agent: AgentProgram) -> None:
    """Earlier requests belong to another agent that had the same id."""
    make_log_row(1)
    make_log_row(2, agent="vision-agent")
    make_log_row(9)
    Agent.objects.filter(agent_id="text-agent").update(created_at=timezone.now() - timedelta(minutes=5))
    assert ids(text_agent.get("/requests", agent="vision-agent")) == ["req_1"]
    assert ids(text_agent.get("/requests", since="2020-01-01")) == ["req_1"]
    assert [text_agent.get(f"/requests/req_{number}").status_code for number in (1, 2, 9)] == [200, 404, 404]


def test_list_is_filtered_by_outcome_route_model_and_time(old_key: None, text_agent: AgentProgram) -> None:
    make_log_row(1, model="m-1", provider="p")
    make_log_row(2, outcome="all_providers_failed", status=502, task_type="design")
    make_log_row(3, outcome="rate_limited", status=429)
    make_log_row(4000, model="m-1", provider="p")
    for row, model in (("req_1", "m-1"), ("req_2", "m-2"), ("req_4000", "m-1")):
        started_at = RequestLog.objects.get(pk=row).started_at
        AttemptLog.objects.create(request_id=row, position=0, provider="p", model=model, at=started_at)

    def ids_with(**filters: str) -> list[str]:
        return ids(text_agent.get("/requests", **filters))

    assert ids_with(status="ok") == ["req_1", "req_4000"]
    assert ids_with(status="error") == ["req_2", "req_3"]
    assert ids_with(status="429") == ids_with(status="rate_limited") == ["req_3"]
    assert ids_with(route="design") == ["req_2"]
    assert (ids_with(model="m-1"), ids_with(model="m-2")) == (["req_1", "req_4000"], ["req_2"])
    day_ago = (timezone.now() - timedelta(days=1)).isoformat()
    assert ids_with(until=day_ago) == ["req_4000"]
    assert ids_with(since=day_ago, status="ok", route="planning", model="m-1") == ["req_1"]
    assert ids_with(route="nothing") == []


@pytest.mark.parametrize(
    ("filters", "status"),
    [
        ({"status": "What?"}, 400),
        ({"since": "yesterday"}, 400),
        ({"since": "0001-01-01T00:00:00+08:00"}, 400),
        ({"until": "9999-12-31"}, 200),
        ({"cursor": "nonsense"}, 400),
        ({"cursor": "MjAyNi0xMS0yNFQwMDowMDowMCswMDowMCAA"}, 400),
        ({"limit": "0"}, 422),
        ({"limit": "101"}, 422),
        ({"route": "\0"}, 400),
        ({"model": "a\0b"}, 400),
        ({"status": "ok\0"}, 400),
    ],
)
def test_invalid_filters_are_rejected_by_name(text_agent: AgentProgram, filters: Any, status: int) -> None:
    answer = text_agent.get("/requests", **filters)
    assert answer.status_code == status, answer.content
    if status != 200:
        assert next(iter(filters)) in answer.content.decode()


def test_page_of_requests_needs_two_queries_of_the_log(old_key: None, text_agent: AgentProgram) -> None:
    """One query reads the requests, the other their files. Neither reads message bodies."""
    for number in range(20):
        make_log_row(number, adaptation="image=native")
    with CaptureQueriesContext(connections[LOGS]) as caught:
        assert len(ids(text_agent.get("/requests"))) == 20
    statements = [query["sql"] for query in caught if "requestlog" in query["sql"] or "attemptlog" in query["sql"]]
    assert len(statements) == 2
    assert '"body"' not in statements[0]


@pytest.mark.sqlite
@pytest.mark.parametrize("filters", [{}, {"status": "failed"}, {"status": "ok"}, {"since": "2026-01-02"}])
def test_query_for_a_page_of_requests_uses_an_index(
    old_key: None, text_agent: AgentProgram, filters: dict[str, str]
) -> None:
    """Without an index, the query would take longer as the request log grows."""
    with CaptureQueriesContext(connections[LOGS]) as caught:
        text_agent.get("/requests", **filters)
    list_query = next(query["sql"] for query in caught if "ORDER BY" in query["sql"])
    with connections[LOGS].cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {list_query}")
        plan = str(cursor.fetchall())
    assert "request_agent (agent=? AND started_at>?)" in plan


def test_request_list_requires_the_scope_of_model_calls(demo: None) -> None:
    assert (
        AgentProgram("text-agent", create_key("text-agent", scopes=["registry:read"])).get("/requests").status_code
        == 403
    )


def test_administrators_list_all_requests_or_those_of_one_agent_without_bodies(
    old_key: None, admin_account: Any
) -> None:
    make_log_row(1, body={"messages": ["secret words"]})
    make_log_row(2, agent="vision-agent")

    tokens: dict[tuple[str, ...], str] = {}

    def get(path: str, *scopes: str, **filters: str) -> Any:
        scopes = scopes or ("requests:read",)
        token = tokens[scopes] = tokens.get(scopes) or create_token(
            admin_account, *scopes, name=f"script {len(tokens)}"
        )
        return Client().get(f"/api/v1/admin{path}", filters, headers={"authorization": f"Bearer {token}"})

    assert ids(get("/requests")) == ["req_1", "req_2"]
    assert ids(get("/requests", agent="vision-agent")) == ["req_2"]
    response = get("/requests/req_1")
    assert (response.json()["agent"], b"secret words" in response.content) == ("text-agent", False)
    assert get("/requests/req_3").status_code == 404
    assert get("/requests", "history:read").status_code == 403
