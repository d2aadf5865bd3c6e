"""Pages of a repeated call, which was answered with the stored response of a call with the same idempotency key."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from tests.cast import AgentProgram
from tests.gateway.plane import chat_body, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def repeated_requests(key: str) -> tuple[Any, Any]:
    first, second = (post(key, chat_body("hello"), **{"idempotency-key": "k"})["x-request-id"] for _ in range(2))
    return logged(first), logged(second)


def test_page_of_a_replay_names_the_original_and_no_call(admin: Client, repeated_requests: Any) -> None:
    """The page of a repeated call has a link to the original and no cost."""
    original, row = repeated_requests
    for language, expected in (("en", "No model was called again."), ("zh-hans", "没有再次调用模型。")):
        with translation.override(language):
            answer = admin.get(f"/requests/{row.pk}/", headers={"accept-language": language})
        text = html.unescape(answer.content.decode())
        assert expected in text
        assert "<dt>Cost</dt>" not in text
        assert f'href="/requests/{original.pk}/"' in text


def test_the_list_shows_it_as_a_replay(admin: Client, repeated_requests: Any) -> None:
    """The list shows "replay" in place of a repeated call's chain."""
    text = admin.get("/requests/").content.decode()
    assert f'<span class="sr">{repeated_requests[0].pk}: </span><span class="chip ok">replay</span>' in text


def test_the_agents_api_names_the_original(caller: Any, repeated_requests: Any, key: str) -> None:
    """The API names the original of a repeated call in `answer.replayOf`."""
    answer = AgentProgram("text-agent", key).get(f"/requests/{repeated_requests[1].pk}").json()
    assert answer["answer"] == {"replayOf": repeated_requests[0].pk}
    assert answer["attempts"] == []
