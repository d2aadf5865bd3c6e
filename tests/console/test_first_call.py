"""The panel that waits for a new key's first call and explains a rejected call."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.models import AgentKey
from capabilities.runtime import renew
from routing_admin.models import RejectedCall, RequestLog
from routing_admin.platform.server.rejected_calls import (
    MAX_KEPT,
    MAX_NOTED,
    KeyShape,
    RejectedCalls,
    key_shape,
    rejected_calls,
)
from routing_admin.request_log.journal import journal
from tests.cast import create_key
from tests.console.page import Page
from tests.console.visits import response_text

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

CHAT = "/v1/chat/completions"


@pytest.fixture
def key() -> str:
    renew(rejected_calls)
    return create_key("text-agent")


def get_panel(client: Client, key: str, **query: Any) -> Any:
    journal().flush()
    rejected_calls().write()
    return client.get(f"/first-call/{key[3:11]}/text-agent/", query)


def send_call(key: str, model: str = "task:planning", path: str = CHAT) -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return int(Client().post(path, body, content_type="application/json", headers=headers).status_code)


def test_agent_page_polls_until_the_first_call(admin: Client, key: str) -> None:
    """If nothing has changed, a poll returns 204, so that screen readers announce nothing twice."""
    page = Page(get_panel(admin, key))
    assert page.heading("Waiting for the first call")
    assert page.code("http://127.0.0.1:8000/v1")
    (poll_url,) = page.polled_urls
    assert admin.get(poll_url).status_code == 204


def test_answered_first_call_is_shown_with_the_model(admin: Client, viewer: Client, key: str) -> None:
    assert send_call(key) == 200
    for client in (admin, viewer):
        page = Page(get_panel(client, key, mark="old"))
        assert page.heading("The first call arrived and was answered")
        assert page.fact("Asked for").text == "task:planning"
        assert page.fact("Answered by").text == "echo/echo-text"
        assert re.fullmatch(r"\d+ in, \d+ out", page.fact("Tokens").text)
        assert page.shows("The route planning puts this line before the system prompt of each call: “请使用中文回答。”")
        request = page.link("The request")
        assert request
        assert request.attributes["href"] == f"/requests/{RequestLog.objects.get(key=key[3:11]).pk}/"
        assert page.polled_urls == []


def test_answered_call_for_an_unknown_route_is_shown_with_a_note(admin: Client, key: str) -> None:
    assert send_call(key, "task:planing") == 200
    assert Page(get_panel(admin, key)).shows("There is no route for task:planing")


def test_call_with_an_unknown_model_is_explained_and_polling_continues(admin: Client, key: str) -> None:
    assert send_call(key, "text-modle") == 404
    page = Page(get_panel(admin, key))
    assert page.heading("A call arrived and got no answer")
    assert page.shows("An alias can map it to one.")
    assert page.code("text-model")
    assert len(page.polled_urls) == 1
    assert send_call(key) == 200
    assert Page(get_panel(admin, key)).heading("The first call arrived and was answered")


def test_failed_call_with_the_new_key_is_explained(admin: Client, key: str) -> None:
    assert send_call(key, path="/v1/v1/chat/completions") == 404
    assert send_call(key[:30]) == 401
    page = Page(get_panel(admin, key))
    assert page.shows("with this key went to /v1/v1/chat/completions, which does not exist here. The base URL is")
    assert page.shows("It may have been cut off when copied")
    assert not page.shows("Other calls arrived in the meantime")
    narrow = create_key("text-agent", scopes=["registry:read"])
    renew(rejected_calls)
    assert send_call(narrow) == 403
    assert Page(get_panel(admin, narrow)).shows("for which the key lacks the scope")


@pytest.mark.parametrize(
    ("key_sent", "expected"),
    [
        ("", "A call arrived without a key."),
        ("sk-proj-0123456789", "Keys here begin with ra_."),
        ("rat_01234567_x", "a token for scripts"),
        ("ra_01234567_" + "x" * 43 + "_00000000", "another key (ra_01234567…)"),
        ("something", "not a key of this installation"),
    ],
)
def test_call_without_the_new_key_is_shown_with_the_kind_of_credential_sent(
    admin: Client, key: str, key_sent: str, expected: str
) -> None:
    """Earlier calls are not shown."""
    assert send_call(key_sent) == 401
    since = int(timezone.now().timestamp()) - 60
    page = Page(get_panel(admin, key, since=since))
    assert page.shows("Other calls arrived in the meantime")
    assert page.shows(expected)
    assert not page.shows("proj")
    RejectedCall.objects.update(at=timezone.now() - timedelta(minutes=2))
    assert not Page(get_panel(admin, key, since=since)).shows(expected)


def test_first_call_polling_stops_after_five_minutes(admin: Client, key: str) -> None:
    page = Page(get_panel(admin, key, since=int(timezone.now().timestamp()) - 400))
    assert page.button("Keep waiting")
    assert page.polled_urls == []
    for since in ("x", "99999999999999999999", "-5", "²"):
        assert Page(get_panel(admin, key, since=since)).polled_urls


def issue_new_key(admin: Client) -> tuple[Any, str]:
    """Issue the agent's only key. Return the response and the key."""
    AgentKey.objects.all().delete()
    answer = admin.post("/keys/issue/text-agent/", {"scopes": ["route"], "label": "new", "expires": ""})
    issued = Page(answer).region("Copy it now. It is shown only once.").control("issued")
    assert issued
    assert re.fullmatch(r"ra_[0-9a-z]{8}_[\w-]{43}_[0-9a-f]{8}", issued.text)
    return answer, issued.text


def test_snippets_contain_the_key_only_right_after_issuing(admin: Client, viewer: Client) -> None:
    answer, issued = issue_new_key(admin)
    assert Page(answer).region("Use it").text.count(issued) == 7
    assert response_text(answer).count(issued) == 8  # The key is nowhere else on the page, not even in an attribute.
    for client in (admin, viewer):
        answer = client.get("/agents/text-agent/")
        assert Page(answer).region("Use it").shows("$ROUTING_ADMIN_KEY")
        assert issued not in response_text(answer)


def test_first_call_panel_is_shown_until_the_first_call_with_the_key(admin: Client, viewer: Client) -> None:
    answer, issued = issue_new_key(admin)
    for page in (Page(answer), *(Page(client.get("/agents/text-agent/")) for client in (admin, viewer))):
        assert page.region("First call").polled_urls[0].startswith(f"/first-call/{issued[3:11]}/text-agent/")
    assert send_call(issued) == 200
    assert Page(admin.get("/agents/text-agent/")).polled_urls == ["/drill/"]


def test_first_call_panel_for_an_unknown_key_returns_404(admin: Client, key: str) -> None:
    assert admin.get("/first-call/unknown/text-agent/").status_code == 404


def test_number_of_recorded_rejected_calls_is_limited() -> None:
    """At most five rejected calls are recorded every two seconds, without secrets, and at most 200 are kept."""
    moments = iter(range(0, 1000, 3))
    recorded_calls = RejectedCalls(lambda: float(next(moments)))
    for _ in range(MAX_KEPT // MAX_NOTED + 3):
        for _ in range(MAX_NOTED * 2):
            recorded_calls.note("key_invalid", "/v1/models", {"authorization": "Bearer ra_01234567_secret"})
        recorded_calls.write()
    assert RejectedCall.objects.count() <= MAX_KEPT
    row = RejectedCall.objects.first()
    assert row is not None
    assert (row.key, row.shape) == ("01234567", "ra")
    recorded_calls.note("key_invalid", "/v1/models", {})
    RejectedCall.objects.update(at=timezone.now() - timedelta(hours=1))
    recorded_calls.write()
    assert RejectedCall.objects.count() == 1
    assert [key_shape(sent_key) for sent_key in ("", "rat_1", "sk-1", "ra_1", "x")] == [
        *(KeyShape.NONE, KeyShape.SCRIPTS, KeyShape.VENDORS, KeyShape.OURS, KeyShape.OTHER)
    ]
