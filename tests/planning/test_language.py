"""The language directive tells the model in which language to answer: how it is chosen and where it is inserted."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from routing_admin.core.configuration.specs import NO_DIRECTIVE, CandidateSpec, Configuration, RouteSpec
from routing_admin.core.planning.language import (
    get_language_directive,
    inject_directive,
    match_language,
    resolve_language,
)
from routing_admin.core.planning.plan import RoutingQuery, plan_route

DIRECTIVES = {"en": "Please respond in English.", "zh": "请使用中文回答。"}
"""The directives of the built-in languages, verbatim."""

messages = st.lists(
    st.builds(
        Message,
        st.sampled_from([Role.SYSTEM, Role.USER, Role.ASSISTANT]),
        st.lists(st.builds(TextPart, st.text(max_size=10)), max_size=2).map(tuple),
    ),
    max_size=5,
).map(tuple)
directives = st.sampled_from(sorted(DIRECTIVES.values()))


@pytest.mark.requirement("MMR-P11")
@pytest.mark.parametrize(
    ("language", "default", "expected"),
    [
        ("zh-CN", "en", "zh"),
        ("zh", None, "zh"),
        ("fr", "zh-CN", "zh"),
        (None, "zh", "zh"),
        (None, None, "en"),
        ("fr", "de", "en"),
        ("EN-us", "zh", "en"),
        ("", "zh", "zh"),
        ("constructor", "zh", "zh"),
    ],
)
def test_language_is_resolved_from_the_request_then_the_default_then_english(language, default, expected):
    """The order is: exact match, match of the primary subtag, the default language, `en`."""
    assert resolve_language(language, default) == expected
    assert get_language_directive(language, default) == DIRECTIVES[expected]


def test_language_can_be_added_with_its_directive():
    more = {**DIRECTIVES, "fr": "Répondez en français."}
    assert match_language("fr-CA", more) == "fr"
    assert get_language_directive("fr-CA", "zh", more) == "Répondez en français."


@pytest.mark.requirement("MMR-P11")
@given(messages, directives)
def test_directive_is_prepended_to_the_first_system_message_and_nothing_else_changes(turns, directive):
    """A system message after an answer is ignored: the conversation's earlier requests had the directive at the
    start.
    """
    before = ChatRequest(turns)
    after = inject_directive(before, directive)
    opening = list(itertools.takewhile(lambda turn: turn.role is not Role.ASSISTANT, turns))
    index = next((index for index, turn in enumerate(opening) if turn.role is Role.SYSTEM), None)
    if index is None:
        assert after.messages == (Message(Role.SYSTEM, (TextPart(directive),)), *turns)
        return
    assert after.messages[:index] + after.messages[index + 1 :] == turns[:index] + turns[index + 1 :]
    assert after.messages[index].text.startswith(directive)
    assert before.messages is turns


@given(messages, directives)
def test_directive_injection_is_idempotent(turns, directive):
    once = inject_directive(ChatRequest(turns), directive)
    assert inject_directive(once, directive) == once


@pytest.mark.parametrize(
    ("route", "language", "expected"),
    [("", None, DIRECTIVES["zh"]), (NO_DIRECTIVE, None, ""), (NO_DIRECTIVE, "en-GB", DIRECTIVES["en"])],
)
def test_route_can_leave_the_language_directive_to_the_caller(route: str, language: str | None, expected: str) -> None:
    spec = RouteSpec("coding", (CandidateSpec("p"),), directive=route)
    configuration = Configuration(default_language="zh")
    assert plan_route(configuration, spec, RoutingQuery(language=language)).directive == expected
