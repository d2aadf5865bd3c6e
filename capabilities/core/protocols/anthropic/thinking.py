"""How much a Claude model is to think: `reasoning_effort` in the words that model has, as a table by its name."""

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

LEAST_BUDGET = 1024
"""Tokens of thinking that are refused when they are fewer; the limit on the answer lies above them."""
BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
)
"""Tokens of thinking for an effort, where a model takes nothing but a number."""
_EFFORTS = MappingProxyType({"minimal": "low", **{word: word for word in ("low", "medium", "high", "xhigh", "max")}})


ADAPTIVE_EFFORT = "high"
"""What adaptive thinking means where nobody says how much."""
TAKES_NUMBERS = re.compile(r"claude-(opus|sonnet)-4[-.]6")
"""Models that think adaptively and take a number of tokens, too."""


class ImpliedEffort(str):
    """The effort nearest to a number of tokens, for models that take none; beside the number it asks for nothing."""

    __slots__ = ()


class Way(StrEnum):
    """How a model is told: a number of tokens, adaptive thinking with an effort, an effort alone, nothing at all."""

    BUDGET = "budget"
    ADAPTIVE = "adaptive"
    EFFORT = "effort"
    NOTHING = "nothing"


_UP_TO_HIGH = MappingProxyType({**_EFFORTS, "xhigh": "high"})
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
"""The first row whose words are in a model's name says how it is told, and which effort is nearest to the one asked.

Source: Anthropic's pages on effort, adaptive and extended thinking (2026-11): adaptive from 4.6 on, no `xhigh` in 4.6,
numbers refused from 4.7 on; what is no Claude of Anthropic's gets an effort alone.
"""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What is said of thinking: fields of the payload, the effort, and the tokens it takes of the answer's limit.

    `says_own` tells that the caller's own object is said, in these words or in those that the model takes.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    effort: str | None = None
    budget: int = 0
    dropped: bool = False
    says_own: bool = False

    @property
    def is_on(self) -> bool:
        """Whether the model is asked to think, which some other parameters do not go with."""
        return self.fields.get("thinking", {}).get("type") not in (None, "disabled")


NOT_A_WORD = Thinking()
"""Where nothing is said of it."""


def thinking_of(chat: ChatRequest, target: Target, refused: set[str]) -> Thinking:
    """What a request's `thinking` and `reasoning_effort` become for a model."""
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
    """The caller's own object, which a program writes for the model that it believes to ask; said as this one takes it.

    An effort beside it says no more than it does, so it is not lost where the model has no word for one.
    """
    kind, budget = own.get("type"), own.get("budget_tokens")
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
    """The least effort that has so many tokens of thinking; None for no number."""
    if not isinstance(budget, int):
        return None
    return ImpliedEffort(next((word for word in ("low", "medium", "high") if budget <= BUDGETS[word]), "high"))


def _quiet(way: Way) -> Thinking:
    return Thinking() if way is Way.NOTHING else Thinking({"thinking": {"type": "disabled"}})


def _think(chat: ChatRequest, way: Way, effort: str, budget: int, origin: str) -> Thinking:
    forced = bool(chat.tools) and (chat.tool_choice == "required" or chat.tool_name is not None)
    if way is Way.ADAPTIVE:  # a tool that must be called leaves no room for thoughts before it
        return Thinking({} if forced else {"thinking": {"type": "adaptive"}}, effort)
    if way is Way.EFFORT:
        return Thinking({}, effort)
    if chat.max_tokens is not None:
        budget = min(budget, chat.max_tokens - 1)
    if way is Way.NOTHING or forced or budget < LEAST_BUDGET or _is_mid_round_without_thoughts(chat.messages, origin):
        return Thinking(dropped=True)
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, None, budget)


def _is_mid_round_without_thoughts(messages: tuple[Message, ...], origin: str) -> bool:
    """Whether the last word is a tool's, and the call before it came without signed thoughts: it must go on so."""
    if not messages or messages[-1].role is not Role.TOOL:
        return False
    last = next((each for each in reversed(messages) if each.role is Role.ASSISTANT), None)
    return last is None or not thoughts_from(last.thoughts, origin)
