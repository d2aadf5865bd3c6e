"""What Anthropic answers as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from capabilities.core.message import CITATIONS, ToolCall, VendorItem
from capabilities.core.protocols.anthropic.finish import ENDINGS
from capabilities.core.protocols.anthropic.supplements import annotations_of_blocks
from capabilities.core.protocols.anthropic.usage import usage_of
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.fields import filled
from capabilities.core.protocols.finish import Ending, ending_of, own_word
from capabilities.core.protocols.vendor_tools import word_of_block
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import Answer, AnswerDetails, Failure, Fault
from capabilities.core.worded import worded

DIALECT = "anthropic-claude-v1"
"""What OpenRouter calls thoughts that are written like these."""


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("type") == "error" or (value.get("error") and "content" not in value):
        return failure_inside(value)
    content = value.get("content")
    if not isinstance(content, list):
        return bad_shape(worded("the answer has no content blocks"))
    return _answer(value, [block for block in content if isinstance(block, dict)])


def _answer(value: dict[str, Any], blocks: list[dict[str, Any]]) -> Answer | Failure:
    text = "".join(words_of(block, "text", "text") for block in blocks)
    reasoning = "".join(words_of(block, "thinking", "thinking") for block in blocks)
    calls, thoughts, vendor = _calls(blocks), tuple(_thoughts(blocks)), tuple(_vendor_items(blocks))
    ending = ending_of(ENDINGS, value.get("stop_reason"), has_calls=bool(calls))
    if not (text or reasoning or thoughts or calls or vendor or ending.explains_silence):
        reason = filled(value.get("stop_reason"))
        nothing = Failure(Fault.EMPTY_CONTENT, worded("the model returned nothing"), 200, reason)
        return nothing.counted(usage_of(value.get("usage")))
    usage, details = usage_of(value.get("usage")), details_of(value, value.get("usage"), ending)
    refusal, model, identity = refusal_of(details), filled(value.get("model")), filled(value.get("id"))
    said, cited = (text, calls, reasoning or None, refusal), annotations_of_blocks(blocks)
    return Answer(*said, ending.word, usage, model, identity, details, thoughts, annotations=cited, vendor=vendor)


TIERS = {"standard": "default"}
"""A service tier that OpenAI has another name for."""
EXPLANATION_CHARS = 2000


def details_of(message: Mapping[str, Any], usage: Any, ending: Ending) -> AnswerDetails:
    """What stands beside a message, or beside the end of a streamed one."""
    stop = message.get("stop_details")
    tier = filled(usage.get("service_tier")) if isinstance(usage, Mapping) else None
    known = (
        {name: text[:EXPLANATION_CHARS] for name in STOP_DETAILS if (text := filled(stop.get(name)))}
        if isinstance(stop, Mapping)
        else {}
    )
    return AnswerDetails(
        own_word(message.get("stop_reason"), ending),
        known or None,
        TIERS.get(tier or "", tier),
        stop_sequence=filled(message.get("stop_sequence")),
        vendor={name: message[name] for name in BESIDE if message.get(name)} or None,
    )


BESIDE = ("container", "context_management")
"""What its own tools say of a whole message."""
STOP_DETAILS = ("type", "category", "explanation")


def refusal_of(details: AnswerDetails) -> str | None:
    """Why the model refused, in the provider's words: its explanation, else the category; None without both."""
    said = details.stop_details or {}
    return said.get("explanation") or said.get("category")


def words_of(block: Mapping[str, Any], kind: str, name: str) -> str:
    """The text under `name` of a block of that kind; empty where there is none."""
    words = block.get(name)
    return words if block.get("type") == kind and isinstance(words, str) else ""


def thought_of(block: Mapping[str, Any], offset: int, calls: int) -> ReasoningBlock | None:
    """What a block wants to be shown again; None for one that is no thought, or not signed."""
    kind = block.get("type")
    if kind == "thinking" and (signature := filled(block.get("signature"))):
        words = words_of(block, "thinking", "thinking")
        return ReasoningBlock(ThoughtForm.TEXT, words, signature, offset, calls, dialect=DIALECT)
    if kind == "redacted_thinking" and (data := filled(block.get("data"))):
        return ReasoningBlock(ThoughtForm.ENCRYPTED, "", data, offset, calls, dialect=DIALECT)
    return None


OURS = ("text", "thinking", "redacted_thinking", "tool_use")
"""Blocks that every API has something like; all others are Anthropic's own."""


def vendor_item(block: dict[str, Any], value: Mapping[str, Any] | None = None, *place: int) -> VendorItem:
    """Return a block of its own tools, or one of the events that bring it, for a caller of the same API."""
    return VendorItem("anthropic", word_of_block(block), block if value is None else value, "", *place)


def _vendor_items(blocks: list[dict[str, Any]]) -> Iterator[VendorItem]:
    """The blocks of its own tools, and words with their sources as it writes them, which it wants to see again."""
    offset = calls = thoughts = 0
    for block in blocks:
        text = words_of(block, "text", "text")
        if (kind := filled(block.get("type"))) is not None and kind not in OURS:
            yield vendor_item(block, None, offset, calls, thoughts)
        elif text and block.get(CITATIONS):
            yield VendorItem("anthropic", CITATIONS, block, "", offset, calls, thoughts)
        thoughts += thought_of(block, offset, calls) is not None
        offset += len(text)
        calls += is_call(block)


def _thoughts(blocks: list[dict[str, Any]]) -> Iterator[ReasoningBlock]:
    offset = calls = 0
    for block in blocks:
        if thought := thought_of(block, offset, calls):
            yield thought
        offset += len(words_of(block, "text", "text"))
        calls += is_call(block)


def is_call(block: Mapping[str, Any]) -> bool:
    """Whether a block calls one of the caller's tools."""
    return block.get("type") == "tool_use" and isinstance(block.get("name"), str)


def _calls(blocks: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for block in filter(is_call, blocks):
        arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
        identity = filled(block.get("id")) or f"call_{len(calls)}"
        calls.append(ToolCall(identity, block["name"], arguments, caller=caller_of(block)))
    return tuple(calls)


def caller_of(block: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return which program of Anthropic's makes a call; None where the model makes it itself."""
    caller = block.get("caller")
    return caller if isinstance(caller, Mapping) and caller.get("type") != "direct" else None
