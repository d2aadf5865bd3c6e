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
LEAST_BUDGET = 1024
# Tokens of thinking for an effort, where a model takes only a number.
BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
)
_EFFORTS = MappingProxyType({"minimal": "low", **{word: word for word in ("low", "medium", "high", "xhigh", "max")}})


# What adaptive thinking means if no effort is named.
ADAPTIVE_EFFORT = "high"
# Models that think adaptively and also take a number of tokens.
TAKES_NUMBERS = re.compile(r"claude-(opus|sonnet)-4[-.]6")


class ImpliedEffort(str):
    """The effort nearest to a number of tokens, for models that take no number; ignored where the number is sent."""

    __slots__ = ()


class Way(StrEnum):
    """How a model takes an effort: as a number of tokens, adaptive with an effort, an effort alone, or not at all."""

    BUDGET = "budget"
    ADAPTIVE = "adaptive"
    EFFORT = "effort"
    NOTHING = "nothing"


_UP_TO_HIGH = MappingProxyType({**_EFFORTS, "xhigh": "high"})
# The first pattern found in a model's name decides its `Way`, and which of its efforts is nearest to the one asked for.
#
# Source: Anthropic's pages on effort, adaptive and extended thinking (2026-11). Adaptive from 4.6 on, no `xhigh` in
# 4.6, numbers refused from 4.7 on. Models that are not Anthropic's get an effort alone.
WAYS: tuple[tuple[re.Pattern[str], Way, Mapping[str, str]], ...] = tuple(
    (re.compile(pattern), way, words)
    for pattern, way, words in (
        (r"claude-3-7|claude-(opus|sonnet|haiku)-4([-.][015])?($|-\d{8}|@|-v|:)", Way.BUDGET, _EFFORTS),
        (r"claude-(3|2|instant)", Way.NOTHING, _EFFORTS),
        (r"claude-(opus|sonnet)-4[-.]6", Way.ADAPTIVE, _UP_TO_HIGH),
        (r"claude-(opus|sonnet|haiku|fable|mythos)-", Way.ADAPTIVE, _EFFORTS),
        (r"", Way.EFFORT, _EFFORTS),
    )
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a payload says about thinking.

    `budget` is the tokens it takes of the answer's limit. `dropped` means that the effort does not reach the model.
    `says_own` means that the caller's own object is sent, unchanged or in the form that the model takes.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    effort: str | None = None
    budget: int = 0
    dropped: bool = False
    says_own: bool = False

    @property
    def is_on(self) -> bool:
        return self.fields.get("thinking", {}).get("type") not in (None, "disabled")


# For a request that says nothing about thinking.
NOT_A_WORD = Thinking()


def thinking_of(chat: ChatRequest, target: Target, refused: set[str]) -> Thinking:
    """Return what a request's `thinking` and `reasoning_effort` become for a model."""
    if not chat.extra:
        return NOT_A_WORD
    asked = chat.extra.get("reasoning_effort")
    way, words = next((way, words) for pattern, way, words in WAYS if pattern.search(target.model.lower()))
    own = chat.extra.get("thinking")
    if isinstance(own, Mapping) and "thinking" not in refused:
        return _say_own(own, asked, chat, target, way, words)
    if asked is None:
        return NOT_A_WORD
    if refused & {"reasoning_effort", "effort"} or not isinstance(asked, str) or asked not in ("none", *words):
        return Thinking(dropped=True)
    thinking = (
        _quiet(way) if asked == "none" else _think(chat, way, words[asked], BUDGETS[asked], target.origin("anthropic"))
    )
    if thinking.fields and "thinking" in refused:
        return Thinking(effort=thinking.effort, dropped=thinking.effort is None)
    return thinking


def _say_own(
    own: Mapping[str, Any], wish: Any, chat: ChatRequest, target: Target, way: Way, words: Mapping[str, str]
) -> Thinking:
    # A program writes this object for the model it believes to ask, so it is sent in the form that this one takes.
    kind, budget = own.get("type"), own.get("budget_tokens")
    # An effort beside the object adds nothing to it, and is not lost where the model takes none.
    says_effort = way in (Way.ADAPTIVE, Way.EFFORT) and not isinstance(wish, ImpliedEffort)
    effort = words.get(str(wish)) if says_effort else None
    if kind == "adaptive" and way is Way.BUDGET:
        effort = str(wish) if wish in BUDGETS else ADAPTIVE_EFFORT
        said = _think(chat, way, words[effort], BUDGETS[effort], target.origin("anthropic"))
        return replace(said, dropped=False, says_own=not said.dropped)
    if kind == "enabled" and way is Way.ADAPTIVE and not TAKES_NUMBERS.search(target.model.lower()):
        others = {key: value for key, value in own.items() if key != "budget_tokens"}
        return Thinking({"thinking": {**others, "type": "adaptive"}}, effort or effort_of(budget), says_own=True)
    if kind == "enabled" and _is_mid_round_without_thoughts(chat.messages, target.origin("anthropic")):
        return Thinking(effort=effort, dropped=effort is None)
    return Thinking({"thinking": own}, effort, budget if isinstance(budget, int) else 0, says_own=True)


def effort_of(budget: Any) -> ImpliedEffort | None:
    """Return the least effort with that many tokens of thinking; None if it is not a number."""
    if not isinstance(budget, int):
        return None
    return ImpliedEffort(next((word for word in ("low", "medium", "high") if budget <= BUDGETS[word]), "high"))


def _quiet(way: Way) -> Thinking:
    return Thinking() if way is Way.NOTHING else Thinking({"thinking": {"type": "disabled"}})


def _think(chat: ChatRequest, way: Way, effort: str, budget: int, origin: str) -> Thinking:
    forced = bool(chat.tools) and (chat.tool_choice == "required" or chat.tool_name is not None)
    if way is Way.ADAPTIVE:  # a tool that must be called leaves no room for reasoning before it
        return Thinking({} if forced else {"thinking": {"type": "adaptive"}}, effort)
    if way is Way.EFFORT:
        return Thinking({}, effort)
    if chat.max_tokens is not None:
        budget = min(budget, chat.max_tokens - 1)
    if way is Way.NOTHING or forced or budget < LEAST_BUDGET or _is_mid_round_without_thoughts(chat.messages, origin):
        return Thinking(dropped=True)
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, None, budget)


def _is_mid_round_without_thoughts(messages: tuple[Message, ...], origin: str) -> bool:
    if not messages or messages[-1].role is not Role.TOOL:
        return False
    # A round of tool calls that began without signed reasoning has to continue without.
    last = next((each for each in reversed(messages) if each.role is Role.ASSISTANT), None)
    return last is None or not thoughts_from(last.thoughts, origin)
