"""Pages about a call that got an earlier call's stored response, because both had the same idempotency key."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from tests.cast import AgentProgram
from tests.console.page import Page
from tests.gateway.plane import chat_body, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def repeated_requests(key: str) -> tuple[Any, Any]:
    first, second = (post(key, chat_body("hello"), **{"idempotency-key": "k"})["x-request-id"] for _ in range(2))
    return logged(first), logged(second)


def test_page_of_a_replayed_response_links_to_the_original_and_shows_no_cost(
    admin: Client, repeated_requests: Any
) -> None:
    original, row = repeated_requests
    for language, expected in (("en", "No model was called again."), ("zh-hans", "没有再次调用模型。")):
        with translation.override(language):
            answer = admin.get(f"/requests/{row.pk}/", headers={"accept-language": language})
        page = Page(answer)
        assert page.shows(expected)
        assert [
            control.name for control in page.controls if control.tag == "dt" and control.name in ("Cost", "费用")
        ] == []
        assert f"/requests/{original.pk}/" in page.link_urls


def test_request_list_marks_a_repeated_call_as_a_replay(admin: Client, repeated_requests: Any) -> None:
    rows = Page(admin.get("/requests/")).table_rows
    replays = [row for row in rows if row.shows(f"{repeated_requests[0].pk}: replay")]
    assert [row.chip("replay").tone for row in replays] == ["ok"]


def test_api_names_the_original_of_a_repeated_call(caller: Any, repeated_requests: Any, key: str) -> None:
    answer = AgentProgram("text-agent", key).get(f"/requests/{repeated_requests[1].pk}").json()
    assert answer["answer"] == {"replayOf": repeated_requests[0].pk}
    assert answer["attempts"] == []
