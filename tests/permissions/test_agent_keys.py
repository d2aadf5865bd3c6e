"""Agent keys: which agent a key authenticates, and from which request header it is read."""

from __future__ import annotations

from typing import Any

import pytest

from capabilities.access import BAD_KEY, NO_KEY, Principal, act_for, authenticate, make_key, read_key, refuse_call
from capabilities.models import AgentKey
from tests.cast import create_key


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"authorization": "Bearer  a "}, "a"),
        ({"authorization": "bearer a", "x-api-key": "b"}, "a"),
        ({"authorization": "Basic a", "x-api-key": "b"}, "b"),
        ({"x-api-key": " a "}, "a"),
        ({"api-key": "a"}, "a"),
        ({"x-goog-api-key": "a"}, "a"),
        ({}, ""),
    ],
)
def test_key_is_read_from_the_header_of_each_vendor_sdk(headers: dict[str, str], expected: str) -> None:
    assert read_key(headers) == expected


def test_key_owner_is_the_keys_own_agent_even_when_acting_for_another_agent() -> None:
    assert Principal("a", "k", frozenset()).key_owner == "a"
    assert Principal("made", "k", frozenset(), acts_through="a").key_owner == "a"


def test_call_without_a_permission_row_or_the_required_scope_is_refused() -> None:
    principal = Principal("a", "k", frozenset({"route"}))
    assert refuse_call(principal, "POST", "/v1/chat/completions") is None
    unlisted = refuse_call(principal, "POST", "/v1/unlisted")
    missing = refuse_call(Principal("a", "k", frozenset()), "POST", "/v1/chat/completions")
    assert [refusal and (refusal.status, refusal.code) for refusal in (unlisted, missing)] == [
        (403, "forbidden"),
        (403, "scope_missing"),
    ]


def test_only_a_stored_key_with_its_secret_is_accepted(demo: Any) -> None:
    """A key that was never stored and a key with a wrong secret are rejected with the same error."""
    key = create_key("text-agent")
    other = make_key()[0]
    forged = "_".join((*key.split("_")[:2], *other.split("_", 2)[2:]))
    assert isinstance(authenticate({"authorization": f"Bearer {key}"}), Principal)
    assert authenticate({}) == NO_KEY
    assert [authenticate({"api-key": key}) for key in ("x", other, forged)] == [BAD_KEY] * 3


def test_key_acts_for_its_own_agent_but_not_for_an_unrelated_agent(demo: Any) -> None:
    principal = Principal("text-agent", "k", frozenset({"agents:write"}))
    assert act_for(principal, "") == act_for(principal, "text-agent") == principal
    refused = act_for(principal, "vision-agent")
    assert not isinstance(refused, Principal)
    assert (refused.status, refused.code) == (403, "agent_forbidden")


def test_key_signed_with_an_older_secret_is_accepted_and_signed_again(demo: Any) -> None:
    headers = {"authorization": f"Bearer {create_key('text-agent')}"}
    AgentKey.objects.update(signed_with="older")
    assert isinstance(authenticate(headers), Principal)
    assert not AgentKey.objects.filter(signed_with="older").exists()
    assert isinstance(authenticate(headers), Principal)
