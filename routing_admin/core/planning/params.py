"""Choose the effective parameters: the request's, else the candidate's, else the route's, else the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from capabilities.core.message import ChatRequest
from capabilities.core.values import value_class
from routing_admin.core.fallback.chain import Call


@value_class
class Params:
    """Sampling parameters, each None if it is not set; a temperature of 0 counts as set."""

    temperature: float | None = None
    max_tokens: int | None = None


def pick_effective(*levels: Params) -> Params:
    """Return each parameter from the first level that sets it; levels are in order of precedence (MMR-P7)."""
    return Params(
        next((level.temperature for level in levels if level.temperature is not None), None),
        next((level.max_tokens for level in levels if level.max_tokens is not None), None),
    )


OUR_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("top_p", "topP"), "top_p"),
        **dict.fromkeys(("stop", "stop_sequences", "stopSequences"), "stop"),
        **dict.fromkeys(
            (
                "response_format",
                "responseSchema",
                "responseJsonSchema",
                "responseMimeType",
                "output_format",
                "format",
                "text.format",
            ),
            "response_format",
        ),
        **dict.fromkeys(("tools", "functionDeclarations"), "tools"),
        **dict.fromkeys(("tool_choice", "toolConfig", "functionCallingConfig"), "tool_choice"),
        **{name: name for name in ("temperature", "parallel_tool_calls")},
    }
)
"""Maps vendors' parameter names to fields of the request; any other name is that of an extra parameter. The token limit
is missing on purpose, because it is never dropped.
"""

EXTRA_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("effort", "thinkingConfig", "thinkingLevel", "thinkingBudget", "reasoning.effort"), "reasoning_effort"
        ),
        "reasoning.summary": "reasoning_summary",
        "text.verbosity": "verbosity",
        "topK": "top_k",
        "presencePenalty": "presence_penalty",
        "frequencyPenalty": "frequency_penalty",
    }
)
"""Maps vendors' names for extra parameters to the names used in requests, for parameters that a protocol translates."""

ADDED = frozenset({"stream_options", "include"})
"""Parameters that a protocol adds by itself, unless the request's extra parameters set them to null."""

EMPTY: Mapping[str, Any] = MappingProxyType({"stop": (), "tools": ()})


def drop_params(chat: ChatRequest, names: Collection[str]) -> ChatRequest:
    """Return the request without the parameters that a model refused; `names` may be any vendor's names for them."""
    our_names = {OUR_NAMES[name] for name in names if name in OUR_NAMES}
    emptied: dict[str, Any] = {name: EMPTY.get(name) for name in our_names}
    refused = {EXTRA_NAMES.get(name, name) for name in names}
    if "thinking" in refused:  # Some models accept the reasoning effort in the parameter `thinking`.
        refused.add("reasoning_effort")
    kept = {name: value for name, value in chat.extra.items() if name not in refused}
    extra = kept | dict.fromkeys(refused & ADDED)
    if chat.vendor:
        emptied["vendor"] = tuple(item for item in chat.vendor if item.path not in names)
    return replace(chat, **emptied) if extra == chat.extra else replace(chat, **emptied, extra=extra)


def apply_params(chat: ChatRequest, call: Call) -> ChatRequest:
    """Return the request with the effective parameters for a candidate, excluding those that the candidate refused."""
    effective = _apply_effective(chat, call)
    return drop_params(effective, call.without_params) if call.without_params else effective


def list_dropped_params(chat: ChatRequest, call: Call) -> tuple[str, ...]:
    """Return the sorted names of the refused parameters that this request contains."""
    if not call.without_params:
        return ()
    effective = _apply_effective(chat, call)
    # Parameters that a protocol adds by itself are not part of the request.
    names = sorted(call.without_params - ADDED)
    return tuple(name for name in names if drop_params(effective, {name}) != effective)


def _apply_effective(chat: ChatRequest, call: Call) -> ChatRequest:
    temperature, max_tokens = call.candidate.temperature, call.candidate.max_tokens
    if (temperature, max_tokens) == (chat.temperature, chat.max_tokens):
        return chat
    return replace(chat, temperature=temperature, max_tokens=max_tokens)
