"""Convert `reasoning_effort` and `thinking` for Claude models, with a table of model names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from capabilities.core.message import ChatRequest, Message, Role
from capabilities.core.thoughts import filter_by_origin
from capabilities.core.wire import Target

# Minimum thinking budget in tokens. Anthropic also requires `max_tokens` to be higher than the budget.
MIN_BUDGET = 1024
# Thinking budgets in tokens for each effort. They are for models that accept only a budget.
BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
)
_EFFORTS = MappingProxyType({"minimal": "low", **{level: level for level in ("low", "medium", "high", "xhigh", "max")}})


# The effort that adaptive thinking uses by default.
ADAPTIVE_EFFORT = "high"
# Models with adaptive thinking that also accept a thinking budget.
ACCEPTS_BUDGET = re.compile(r"claude-(opus|sonnet)-4[-.]6")


class ImpliedEffort(str):
    """The effort that corresponds to a thinking budget, for models that accept no budget.

    It is ignored if the budget itself is sent.
    """

    __slots__ = ()


class ThinkingMode(StrEnum):
    """How a model accepts an effort: as a thinking budget, with adaptive thinking, as an effort only, or not at all."""

    BUDGET = "budget"
    ADAPTIVE = "adaptive"
    EFFORT = "effort"
    NOTHING = "nothing"


_UP_TO_HIGH = MappingProxyType({**_EFFORTS, "xhigh": "high"})
# The first pattern that matches a model's name determines the mode, and which effort is sent for each requested effort.
# Source: Anthropic's pages on effort, adaptive and extended thinking (2026-11). From Claude 4.6 on, thinking is
# adaptive. Claude 4.6 has no `xhigh`, and models from 4.7 on reject budgets. Other vendors' models get only an effort.
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
    """The thinking settings in a request to a model.

    `budget` is the number of thinking tokens, which count towards `max_tokens`. `dropped` means that the effort is
    not sent to the model. `uses_own` means that the caller's own `thinking` object is sent, either unchanged or in
    another form that the model accepts.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    effort: str | None = None
    budget: int = 0
    dropped: bool = False
    uses_own: bool = False

    @property
    def is_on(self) -> bool:
        return self.fields.get("thinking", {}).get("type") not in (None, "disabled")


# The settings for requests that do not mention thinking.
UNSPECIFIED = Thinking()


def build_thinking(chat: ChatRequest, target: Target, refused: set[str]) -> Thinking:
    """Return the thinking settings that a model supports for the `thinking` and `reasoning_effort` in a request."""
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
    # The caller wrote this object for another model, so convert it to a form that the actual model accepts.
    kind, budget = thinking_object.get("type"), thinking_object.get("budget_tokens")
    # If the request contains this object, an effort is redundant, so it does not count as dropped.
    says_effort = mode in (ThinkingMode.ADAPTIVE, ThinkingMode.EFFORT) and not isinstance(wish, ImpliedEffort)
    effort = efforts.get(str(wish)) if says_effort else None
    if kind == "adaptive" and mode is ThinkingMode.BUDGET:
        effort = str(wish) if wish in BUDGETS else ADAPTIVE_EFFORT
        thinking = _think(chat, mode, efforts[effort], BUDGETS[effort], target.origin("anthropic"))
        return replace(thinking, dropped=False, uses_own=not thinking.dropped)
    if kind == "enabled" and mode is ThinkingMode.ADAPTIVE and not ACCEPTS_BUDGET.search(target.model.lower()):
        rest = {key: value for key, value in thinking_object.items() if key != "budget_tokens"}
        return Thinking({"thinking": {**rest, "type": "adaptive"}}, effort or imply_effort(budget), uses_own=True)
    if kind == "enabled" and _is_mid_round_without_thoughts(chat.messages, target.origin("anthropic")):
        return Thinking(effort=effort, dropped=effort is None)
    return Thinking({"thinking": thinking_object}, effort, budget if isinstance(budget, int) else 0, uses_own=True)


def imply_effort(budget: Any) -> ImpliedEffort | None:
    """Return the lowest effort up to `high` that covers this budget, or None if the budget is not an integer."""
    if not isinstance(budget, int):
        return None
    return ImpliedEffort(next((effort for effort in ("low", "medium", "high") if budget <= BUDGETS[effort]), "high"))


def _disabled(mode: ThinkingMode) -> Thinking:
    return Thinking() if mode is ThinkingMode.NOTHING else Thinking({"thinking": {"type": "disabled"}})


def _think(chat: ChatRequest, mode: ThinkingMode, effort: str, budget: int, origin: str) -> Thinking:
    forced = bool(chat.tools) and (chat.tool_choice == "required" or chat.tool_name is not None)
    if mode is ThinkingMode.ADAPTIVE:  # If a tool call is forced, the model cannot think before it.
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
    # If a sequence of tool calls began without signed reasoning, it must be continued without thinking.
    last = next((message for message in reversed(messages) if message.role is Role.ASSISTANT), None)
    return last is None or not filter_by_origin(last.thoughts, origin)
