"""Decode complete responses of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.message import CITATIONS, ToolCall, VendorItem
from capabilities.core.protocols.answer_fields import (
    CALLS,
    CUT,
    FILTERED,
    UNFINISHED,
    WHOLE,
    Ending,
    map_ending,
    non_empty_text,
    read_counts,
    sum_counts,
    vendor_reason,
)
from capabilities.core.protocols.errors import bad_shape, parse_inner_failure, parse_object
from capabilities.core.protocols.vendor_tools import block_tool_name
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, AnswerDetails, Failure, Fault, Usage


def parse_citations(citations: Iterable[Any], start: int, end: int) -> tuple[Mapping[str, Any], ...]:
    """Return the citations in a text block, in OpenAI's format. `start` and `end` are its offsets in the answer."""
    return tuple(_annotation(citation, start, end) for citation in citations if isinstance(citation, Mapping))


def _annotation(citation: Mapping[str, Any], start: int, end: int) -> Mapping[str, Any]:
    url = non_empty_text(citation.get("url")) or non_empty_text(citation.get("source"))
    title = non_empty_text(citation.get("title")) or non_empty_text(citation.get("document_title")) or ""
    position = {"start_index": start, "end_index": end, "title": title}
    if url:
        quote = non_empty_text(citation.get("cited_text"))
        return {
            "type": "url_citation",
            "url_citation": {"url": url, **position, **({"content": quote} if quote else {})},
        }
    # A citation without a URL cites a file in the request. All its fields are passed on to the client.
    return {"type": "file_citation", "file_citation": {**citation, **position}}


def parse_block_citations(blocks: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    annotations: list[Mapping[str, Any]] = []
    at = 0
    for block in blocks:
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            continue
        if isinstance(block.get("citations"), list):
            annotations += parse_citations(block["citations"], at, at + len(text))
        at += len(text)
    return tuple(annotations)


ENDINGS: Mapping[str, Ending] = {
    "end_turn": WHOLE,
    "stop_sequence": WHOLE,
    "tool_use": CALLS,
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "refusal": FILTERED,
    "pause_turn": UNFINISHED,  # The vendor's own tools need another call, so this text is only part of the answer.
    "compaction": UNFINISHED,
}


# Maps names in a `usage` object (for `DETAILS`, in its nested objects) to fields of `Usage`. Anthropic's input token
# count excludes tokens read from or written to the cache.
TOTALS: Mapping[str, str] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "cache_creation": {
        "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
        "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
    },
    "output_tokens_details": {"thinking_tokens": "reasoning_tokens"},
    "server_tool_use": {"web_search_requests": "web_search_requests", "web_fetch_requests": "web_fetch_requests"},
}
# Fields of a `usage` object that are ignored, with the reason.
IGNORED_COUNTS: Mapping[str, str] = {
    "service_tier": "is in the details of the answer",
    "inference_geo": "no count",
    "speed": "no count",
    "iterations": "the same tokens, call by call",
    "fallback_credit": "no count",
}


def parse_usage(value: Any) -> Usage:
    """Return the token counts. As in the other protocols, the prompt tokens include cached tokens."""
    counts: dict[str, int] = {}
    read_counts(value, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(value.get(name) if counts else None, names, counts)
    cache_writes = sum_counts(counts.get("cache_write_5m_tokens"), counts.get("cache_write_1h_tokens"))
    if cache_writes is not None:
        counts.setdefault("cache_write_tokens", cache_writes)
    if "prompt_tokens" in counts:
        read = (counts["prompt_tokens"], counts.get("cached_tokens"), counts.get("cache_write_tokens"))
        prompt = sum_counts(*read)
        return Usage(
            **counts | {"prompt_tokens": prompt, "total_tokens": sum_counts(prompt, counts.get("completion_tokens"))}
        )
    return Usage(**counts)


# OpenRouter's name for Anthropic's reasoning format.
DIALECT = "anthropic-claude-v1"


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    value = parse_object(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("type") == "error" or (value.get("error") and "content" not in value):
        return parse_inner_failure(value)
    content = value.get("content")
    if not isinstance(content, list):
        return bad_shape(translatable("the answer has no content blocks"))
    return _answer(value, [block for block in content if isinstance(block, dict)])


def _answer(value: dict[str, Any], blocks: list[dict[str, Any]]) -> Answer | Failure:
    text = "".join(block_text(block, "text", "text") for block in blocks)
    reasoning = "".join(block_text(block, "thinking", "thinking") for block in blocks)
    calls, thoughts, vendor = _calls(blocks), tuple(_thoughts(blocks)), tuple(_vendor_items(blocks))
    ending = map_ending(ENDINGS, value.get("stop_reason"), has_calls=bool(calls))
    if not (text or reasoning or thoughts or calls or vendor or ending.explains_silence):
        reason = non_empty_text(value.get("stop_reason"))
        failure = Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200, reason)
        return failure.counted(parse_usage(value.get("usage")))
    usage, details = parse_usage(value.get("usage")), build_details(value, value.get("usage"), ending)
    refusal, model, identity = (
        refusal_text(details),
        non_empty_text(value.get("model")),
        non_empty_text(value.get("id")),
    )
    answer_fields, annotations = (text, calls, reasoning or None, refusal), parse_block_citations(blocks)
    return Answer(
        *answer_fields,
        ending.finish_reason,
        usage,
        model,
        identity,
        details,
        thoughts,
        annotations=annotations,
        vendor=vendor,
    )


# Maps service tiers to OpenAI's names for them, if these are different.
TIERS = {"standard": "default"}
EXPLANATION_CHARS = 2000


def build_details(message: Mapping[str, Any], usage: Any, ending: Ending) -> AnswerDetails:
    """Return the details of a message, or of the event that ends a streamed message."""
    stop = message.get("stop_details")
    tier = non_empty_text(usage.get("service_tier")) if isinstance(usage, Mapping) else None
    stop_details = (
        {name: text[:EXPLANATION_CHARS] for name in STOP_DETAILS if (text := non_empty_text(stop.get(name)))}
        if isinstance(stop, Mapping)
        else {}
    )
    return AnswerDetails(
        vendor_reason(message.get("stop_reason"), ending),
        stop_details or None,
        TIERS.get(tier or "", tier),
        stop_sequence=non_empty_text(message.get("stop_sequence")),
        vendor={name: message[name] for name in MESSAGE_FIELDS if message.get(name)} or None,
    )


# Fields of a message in which the vendor's own tools report their state.
MESSAGE_FIELDS = ("container", "context_management")
STOP_DETAILS = ("type", "category", "explanation")


def refusal_text(details: AnswerDetails) -> str | None:
    """Return the provider's explanation of a refusal, or else its category. None if there is neither."""
    details_of_stop = details.stop_details or {}
    return details_of_stop.get("explanation") or details_of_stop.get("category")


def block_text(block: Mapping[str, Any], kind: str, name: str) -> str:
    text = block.get(name)
    return text if block.get("type") == kind and isinstance(text, str) else ""


def parse_thought(block: Mapping[str, Any], offset: int, calls: int) -> ReasoningBlock | None:
    """Return a block's reasoning, which must be sent back to the model, or None if it is not signed."""
    kind = block.get("type")
    if kind == "thinking" and (signature := non_empty_text(block.get("signature"))):
        text = block_text(block, "thinking", "thinking")
        return ReasoningBlock(ThoughtForm.TEXT, text, signature, offset, calls, dialect=DIALECT)
    if kind == "redacted_thinking" and (data := non_empty_text(block.get("data"))):
        return ReasoningBlock(ThoughtForm.ENCRYPTED, "", data, offset, calls, dialect=DIALECT)
    return None


# Blocks that exist in some form in all vendors' APIs. All other blocks exist only in Anthropic's API.
STANDARD_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use")


def vendor_item(block: dict[str, Any], value: Mapping[str, Any] | None = None, *position: int) -> VendorItem:
    """Return a block of Anthropic's own tools, or a stream event of such a block, for clients of Anthropic's API."""
    return VendorItem("anthropic", block_tool_name(block), block if value is None else value, "", *position)


def _vendor_items(blocks: list[dict[str, Any]]) -> Iterator[VendorItem]:
    offset = calls = thoughts = 0
    for block in blocks:
        text = block_text(block, "text", "text")
        if (kind := non_empty_text(block.get("type"))) is not None and kind not in STANDARD_BLOCKS:
            yield vendor_item(block, None, offset, calls, thoughts)
        # Anthropic requires cited text to be sent back unchanged, with its sources.
        elif text and block.get(CITATIONS):
            yield VendorItem("anthropic", CITATIONS, block, "", offset, calls, thoughts)
        thoughts += parse_thought(block, offset, calls) is not None
        offset += len(text)
        calls += is_call(block)


def _thoughts(blocks: list[dict[str, Any]]) -> Iterator[ReasoningBlock]:
    offset = calls = 0
    for block in blocks:
        if thought := parse_thought(block, offset, calls):
            yield thought
        offset += len(block_text(block, "text", "text"))
        calls += is_call(block)


def is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and isinstance(block.get("name"), str)


def _calls(blocks: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for block in filter(is_call, blocks):
        arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
        identity = non_empty_text(block.get("id")) or f"call_{len(calls)}"
        calls.append(ToolCall(identity, block["name"], arguments, caller=parse_caller(block)))
    return tuple(calls)


def parse_caller(block: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the server-side program (such as code execution) that made a tool call, or None if the model made it."""
    caller = block.get("caller")
    return caller if isinstance(caller, Mapping) and caller.get("type") != "direct" else None
