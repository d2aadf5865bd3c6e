"""Translate `reasoning_effort` and `thinking` for Claude models, by a table of their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from capabilities.core.message import ChatRequest, Message, Role
from capabilities.core.thoughts import thoughts_from
from capabilities.core.wire import Target

# Fewer tokens of thinking are refused. The limit on the answer has to lie above them.
MIN_BUDGET = 1024
# Tokens of thinking for an effort, where a model takes only a number.
BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
)
_EFFORTS = MappingProxyType({"minimal": "low", **{level: level for level in ("low", "medium", "high", "xhigh", "max")}})


# What adaptive thinking means if no effort is named.
ADAPTIVE_EFFORT = "high"
# Models that think adaptively and also take a number of tokens.
TAKES_NUMBERS = re.compile(r"claude-(opus|sonnet)-4[-.]6")


class ImpliedEffort(str):
    """The effort nearest to a number of tokens, for models that take no number; ignored where the number is sent."""

    __slots__ = ()


class ThinkingMode(StrEnum):
    """How a model takes an effort: as a number of tokens, adaptive with an effort, an effort alone, or not at all."""

    BUDGET = "budget"
    ADAPTIVE = "adaptive"
    EFFORT = "effort"
    NOTHING = "nothing"


_UP_TO_HIGH = MappingProxyType({**_EFFORTS, "xhigh": "high"})
# The first pattern found in a model's name decides its mode, and which of its efforts is nearest to the requested one.
#
# Source: Anthropic's pages on effort, adaptive and extended thinking (2026-11). Adaptive from 4.6 on, no `xhigh` in
# 4.6, numbers refused from 4.7 on. Models that are not Anthropic's get an effort alone.
THINKING_MODES: tuple[tuple[re.Pattern[str], ThinkingMode, Mapping[str, str]], ...] = tuple(
    (re.compile(pattern), mode, efforts)
    for pattern, mode, efforts in (
        (r"claude-3-7|claude-(opus|sonnet|haiku)-4([-.][015])?($|-\d{8}|@|-v|:)", ThinkingMode.BUDGET, _EFFORTS),
        (r"claude-(3|2|instant)", ThinkingMode.NOTHING, _EFFORTS),
        (r"claude-(opus|sonnet)-4[-.]6", ThinkingMode.ADAPTIVE, _UP_TO_HIGH),
        (r"claude-(opus|sonnet|haiku|fable|mythos)-", ThinkingMode.ADAPTIVE, _EFFORTS),
        (r"", ThinkingMode.EFFORT, _EFFORTS),
    )
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a payload says about thinking.

    `budget` is the tokens it takes of the answer's limit. `dropped` means that the effort does not reach the model.
    `uses_own` means that the caller's own object is sent, unchanged or in the form that the model takes.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    effort: str | None = None
    budget: int = 0
    dropped: bool = False
    uses_own: bool = False

    @property
    def is_on(self) -> bool:
        return self.fields.get("thinking", {}).get("type") not in (None, "disabled")


# For a request that says nothing about thinking.
UNSPECIFIED = Thinking()


def thinking_of(chat: ChatRequest, target: Target, refused: set[str]) -> Thinking:
    """Return what a request's `thinking` and `reasoning_effort` become for a model."""
    if not chat.extra:
        return UNSPECIFIED
    wish = chat.extra.get("reasoning_effort")
    mode, efforts = next(
        (mode, efforts) for pattern, mode, efforts in THINKING_MODES if pattern.search(target.model.lower())
    )
    thinking_object = chat.extra.get("thinking")
    if isinstance(thinking_object, Mapping) and "thinking" not in refused:
        return _translate_own(thinking_object, wish, chat, target, mode, efforts)
    if wish is None:
        return UNSPECIFIED
    if refused & {"reasoning_effort", "effort"} or not isinstance(wish, str) or wish not in ("none", *efforts):
        return Thinking(dropped=True)
    thinking = (
        _disabled(mode)
        if wish == "none"
        else _think(chat, mode, efforts[wish], BUDGETS[wish], target.origin("anthropic"))
    )
    if thinking.fields and "thinking" in refused:
        return Thinking(effort=thinking.effort, dropped=thinking.effort is None)
    return thinking


def _translate_own(
    thinking_object: Mapping[str, Any],
    wish: Any,
    chat: ChatRequest,
    target: Target,
    mode: ThinkingMode,
    efforts: Mapping[str, str],
) -> Thinking:
    # A program writes this object for the model it believes to ask, so it is sent in the form that this one takes.
    kind, budget = thinking_object.get("type"), thinking_object.get("budget_tokens")
    # An effort beside the object adds nothing to it, and is not lost where the model takes none.
    says_effort = mode in (ThinkingMode.ADAPTIVE, ThinkingMode.EFFORT) and not isinstance(wish, ImpliedEffort)
    effort = efforts.get(str(wish)) if says_effort else None
    if kind == "adaptive" and mode is ThinkingMode.BUDGET:
        effort = str(wish) if wish in BUDGETS else ADAPTIVE_EFFORT
        thinking = _think(chat, mode, efforts[effort], BUDGETS[effort], target.origin("anthropic"))
        return replace(thinking, dropped=False, uses_own=not thinking.dropped)
    if kind == "enabled" and mode is ThinkingMode.ADAPTIVE and not TAKES_NUMBERS.search(target.model.lower()):
        rest = {key: value for key, value in thinking_object.items() if key != "budget_tokens"}
        return Thinking({"thinking": {**rest, "type": "adaptive"}}, effort or effort_of(budget), uses_own=True)
    if kind == "enabled" and _is_mid_round_without_thoughts(chat.messages, target.origin("anthropic")):
        return Thinking(effort=effort, dropped=effort is None)
    return Thinking({"thinking": thinking_object}, effort, budget if isinstance(budget, int) else 0, uses_own=True)


def effort_of(budget: Any) -> ImpliedEffort | None:
    """Return the least effort with that many tokens of thinking; None if it is not a number."""
    if not isinstance(budget, int):
        return None
    return ImpliedEffort(next((effort for effort in ("low", "medium", "high") if budget <= BUDGETS[effort]), "high"))


def _disabled(mode: ThinkingMode) -> Thinking:
    return Thinking() if mode is ThinkingMode.NOTHING else Thinking({"thinking": {"type": "disabled"}})


def _think(chat: ChatRequest, mode: ThinkingMode, effort: str, budget: int, origin: str) -> Thinking:
    forced = bool(chat.tools) and (chat.tool_choice == "required" or chat.tool_name is not None)
    if mode is ThinkingMode.ADAPTIVE:  # a tool that must be called leaves no room for reasoning before it
        return Thinking({} if forced else {"thinking": {"type": "adaptive"}}, effort)
    if mode is ThinkingMode.EFFORT:
        return Thinking({}, effort)
    if chat.max_tokens is not None:
        budget = min(budget, chat.max_tokens - 1)
    if (
        mode is ThinkingMode.NOTHING
        or forced
        or budget < MIN_BUDGET
        or _is_mid_round_without_thoughts(chat.messages, origin)
    ):
        return Thinking(dropped=True)
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, None, budget)


def _is_mid_round_without_thoughts(messages: tuple[Message, ...], origin: str) -> bool:
    if not messages or messages[-1].role is not Role.TOOL:
        return False
    # A round of tool calls that began without signed reasoning has to continue without.
    last = next((message for message in reversed(messages) if message.role is Role.ASSISTANT), None)
    return last is None or not thoughts_from(last.thoughts, origin)
