"""The parameters that apply to a candidate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool
from capabilities.core.protocols.openai.requests import OpenAI
from capabilities.core.wire import Target
from routing_admin.core.fallback.chain import Call, PlannedCandidate, Timeouts
from routing_admin.core.planning.params import OUR_NAMES, Params, apply_params, drop_params, pick_effective
from tests.fallback.scripted_runs import temperatures, token_limits


@pytest.mark.requirement("MMR-P7")
@given(st.lists(st.builds(Params, temperatures, token_limits), max_size=4))
def test_each_parameter_is_taken_from_the_highest_level_that_sets_it(levels):
    effective = pick_effective(*levels)
    named = [level.temperature for level in levels if level.temperature is not None]
    limits = [level.max_tokens for level in levels if level.max_tokens is not None]
    assert effective == Params(named[0] if named else None, limits[0] if limits else None)


def test_temperature_zero_in_a_request_overrides_other_temperatures():
    assert pick_effective(Params(0.0), Params(0.8, 100)) == Params(0.0, 100)


FULL = ChatRequest(
    (Message(Role.USER, (TextPart("hi"),)),),
    temperature=0.0,
    max_tokens=5,
    top_p=0.5,
    stop=("x",),
    tools=(Tool("t"),),
    tool_choice="auto",
    parallel_tool_calls=True,
    response_format={"type": "json_object"},
    extra={"seed": 7, "n": 1},
)


OURS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "stop": "stop",
    "stop_sequences": "stop",
    "stopSequences": "stop",
    "response_format": "response_format",
    "responseSchema": "response_format",
    "responseJsonSchema": "response_format",
    "responseMimeType": "response_format",
    "output_format": "response_format",
    "format": "response_format",
    "text.format": "response_format",
    "tools": "tools",
    "functionDeclarations": "tools",
    "tool_choice": "tool_choice",
    "toolConfig": "tool_choice",
    "functionCallingConfig": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Maps each name that a vendor's error uses for a parameter to the gateway's name."""


def test_parameter_name_table_covers_every_vendor_name() -> None:
    """Every vendor-specific name that the product knows must be in the table above."""
    assert sorted(OUR_NAMES) == sorted(OURS)


@pytest.mark.parametrize("name", [*OURS, "seed"])
def test_rejected_parameter_is_dropped_under_every_vendor_name(name):
    bare = drop_params(FULL, {name})
    ours = OURS.get(name)
    for field in ("max_tokens", *sorted(set(OURS.values()))):
        value = getattr(bare, field)
        assert value in (None, ()) if field == ours else value == getattr(FULL, field)
    assert dict(bare.extra) == ({"n": 1} if name == "seed" else FULL.extra)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"])
def test_token_limit_is_never_dropped(name):
    assert drop_params(FULL, {name}) == FULL


@pytest.mark.parametrize(("vendors", "ours"), [("effort", "reasoning_effort"), ("topK", "top_k"), ("seed", "seed")])
def test_rejected_extra_parameter_is_also_dropped_by_its_vendor_name(vendors, ours):
    """Anthropic's error names `effort`, while the caller sent `reasoning_effort`."""
    chat = replace(FULL, extra={ours: 1, "n": 1})
    assert dict(drop_params(chat, {vendors}).extra) == {"n": 1}


def test_rejected_parameter_added_by_a_protocol_is_dropped():
    """If a host rejects `stream_options`, which the protocol adds, it is called again without that parameter."""
    target = Target("old", "https://old.example/v1", "m")
    first = OpenAI().encode(FULL, target, stream=True)
    again = OpenAI().encode(drop_params(FULL, {"stream_options"}), target, stream=True)
    assert "stream_options" in first.payload
    assert "stream_options" not in again.payload
    assert again.payload == {name: value for name, value in first.payload.items() if name != "stream_options"}


def test_candidate_gets_its_effective_parameters():
    call = Call(PlannedCandidate(0, "a", "m", 0.3, 9), 1, Timeouts(), frozenset({"temperature"}))
    chat = apply_params(FULL, call)
    assert (chat.temperature, chat.max_tokens, chat.messages) == (None, 9, FULL.messages)
