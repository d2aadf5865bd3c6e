"""Render answers and errors in the format of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.json_codec import read_repaired_json
from capabilities.core.message import ToolCall, VendorItem, interleave
from capabilities.core.protocols.answer_fields import FILE_CITATION, URL_CITATION, count_at, non_empty_text
from capabilities.core.thoughts import ThoughtForm
from capabilities.core.wire import Annotation, Answer, AnswerDetails, Media, Usage
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.messages.blocks import PROTOCOL
from routing_admin.gateway.messages.thinking_blocks import build_block, shows_thinking, thinking_block
from routing_admin.gateway.reasoning_signatures import CARRIER
from routing_admin.platform.server.request_id import new_id

STOP_REASONS: Mapping[str, str] = MappingProxyType(
    {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
)
"""Maps canonical finish reasons to Anthropic's stop reasons; any other reason is `end_turn`."""
ERROR_TYPES: Mapping[int, str] = MappingProxyType(
    {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)
"""Maps statuses to Anthropic's error types; any other 4xx is an invalid request, any other 5xx an API error."""


CITATION_LOCATIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "char_location": ("start_char_index", "end_char_index"),
        "page_location": ("start_page_number", "end_page_number"),
        "content_block_location": ("start_block_index", "end_block_index"),
    }
)
"""Maps each of Anthropic's citation types with a location in a file to the fields of that location."""
SOURCES: Mapping[str, Mapping[str, type]] = MappingProxyType(
    {
        "web_search_result_location": {"cited_text": str, "url": str, "encrypted_index": str},
        "search_result_location": {
            "cited_text": str,
            "source": str,
            "search_result_index": int,
            "start_block_index": int,
            "end_block_index": int,
        },
    }
)
"""Maps the other types of Anthropic's citations to the fields that Anthropic's clients require."""
THREAD_REFUSED = "thread_unsupported_request"
"""After this error code, Anthropic's clients send the whole conversation instead of a thread's id."""
TIERS = ("standard", "priority", "batch")
"""Anthropic's service tiers; other vendors' tiers are omitted from the answer."""
OWN_REASONS = ("pause_turn", "compaction", "model_context_window_exceeded")
"""Anthropic's stop reasons that have no canonical equivalent but matter to Anthropic's clients."""
NO_END: Mapping[str, Any] = MappingProxyType({"stop_reason": None, "stop_sequence": None})
"""Values of the end fields in a message that is not finished.

Only these two fields may be null; like Anthropic, omit all others.
"""


def message_id() -> str:
    return new_id("msg_")


def message_json(answer: Answer, call: ChatCall, model: str, origin: str) -> dict[str, Any]:
    if not shows_thinking(call.chat):
        answer = replace(answer, reasoning=None, thoughts=())
    return {
        **head_json(message_id(), model),
        "content": _move_carriers(list(_list_blocks(answer, origin))),
        **end_json(answer.finish_reason, answer.details),
        **(answer.details.vendor or {}),
        "usage": usage_json(answer.usage, answer.details.service_tier),
    }


def head_json(identity: str, model: str) -> dict[str, Any]:
    """Return the message without its content blocks, for the start of a stream and for complete answers."""
    head = {"id": identity, "type": "message", "role": "assistant", "model": model, "content": []}
    return {**head, **NO_END, "usage": usage_json(Usage())}


REFUSAL_CATEGORIES = {"cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms"}
"""Categories of refusals that Anthropic's clients know; they reject a message with any other category."""


def end_json(finish_reason: str, details: AnswerDetails) -> dict[str, Any]:
    """Return the fields that say why the message ended, including the stop sequence or a refusal's details."""
    end = {**NO_END, "stop_reason": STOP_REASONS.get(finish_reason, "end_turn")}
    if details.stop_sequence and finish_reason == "stop":
        end |= {"stop_reason": "stop_sequence", "stop_sequence": details.stop_sequence}
    if details.stop_reason in OWN_REASONS:
        end["stop_reason"] = details.stop_reason
    refusal = details.stop_details
    if not refusal or refusal.get("type") != "refusal":
        return end
    category = refusal.get("category")
    return {**end, "stop_details": {**refusal, "category": category if category in REFUSAL_CATEGORIES else None}}


def usage_json(usage: Usage, tier: str | None = None) -> dict[str, Any]:
    """Return the token counts, or 0 for counts that are unknown; Anthropic's `input_tokens` excludes cached tokens."""
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    fields: dict[str, Any] = {
        "input_tokens": max((usage.prompt_tokens or 0) - cached - written, 0),
        "output_tokens": usage.completion_tokens or 0,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    short, long = usage.cache_write_5m_tokens, usage.cache_write_1h_tokens
    if short is not None or long is not None:
        fields["cache_creation"] = {"ephemeral_5m_input_tokens": short or 0, "ephemeral_1h_input_tokens": long or 0}
    if usage.reasoning_tokens is not None:
        fields["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    searches, fetches = usage.web_search_requests, usage.web_fetch_requests
    if searches is not None or fetches is not None:
        fields["server_tool_use"] = {"web_search_requests": searches or 0, "web_fetch_requests": fetches or 0}
    if tier in TIERS:
        fields["service_tier"] = tier
    return fields


def _list_blocks(answer: Answer, origin: str) -> Iterator[dict[str, Any]]:
    # Preserve the position of each reasoning block. A refusal and generated media become text at the end.
    offset = called = 0
    if answer.reasoning and not any(thought.form is ThoughtForm.TEXT for thought in answer.thoughts):
        yield thinking_block(answer.reasoning)
    items = [item for item in answer.vendor if item.protocol == PROTOCOL]
    for entry in interleave(answer.thoughts, items):
        yield from _text_blocks(answer.text[offset : entry.offset])
        yield from (_call_block(call) for call in answer.tool_calls[called : entry.calls])
        yield _vendor_block(entry) if isinstance(entry, VendorItem) else build_block(entry, origin)
        covered = entry.covered if isinstance(entry, VendorItem) else 0
        offset, called = max(offset, entry.offset + covered), max(called, entry.calls)
    citations = () if any(item.covered for item in items) else list_citations(answer.annotations)
    yield from _text_blocks(answer.text[offset:], citations)
    yield from _text_blocks(answer.refusal or "")
    yield from _text_blocks(media_text(answer.media))
    yield from (_call_block(call) for call in answer.tool_calls[called:])


def _move_carriers(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Clients use the last block as the answer, so move other vendors' reasoning before it.
    end = len(blocks)
    while end and str(blocks[end - 1].get("data", "")).startswith(CARRIER):
        end -= 1
    return [*blocks[: end - 1], *blocks[end:], blocks[end - 1]] if end else []


def _text_blocks(text: str, citations: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    if not text:
        return []
    return [{"type": "text", "text": text, **({"citations": list(citations)} if citations else {})}]


def _call_block(call: ToolCall) -> dict[str, Any]:
    return call_json(call.id, call.name, _call_input(call), call.caller)


def call_json(identity: str, name: str, arguments: Any, caller: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a tool call; without `caller`, the model itself made it."""
    made_by = caller or {"type": "direct"}
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments, "caller": made_by}


def _call_input(call: ToolCall) -> Any:
    # Pass malformed arguments on unchanged under `input`.
    try:
        value = read_repaired_json(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = call.arguments
    return value if isinstance(value, dict) else {"input": value}


def list_citations(annotations: Sequence[Annotation]) -> list[dict[str, Any]]:
    """Return the sources as citations, of web pages or of locations in files."""
    citations = []
    for annotation in annotations:
        kind = annotation.get("type")
        cited = annotation.get(str(kind))
        if not isinstance(cited, Mapping):
            continue
        if kind == URL_CITATION:
            location = {
                "type": "web_search_result_location",
                "url": cited.get("url"),
                "title": cited.get("title") or "",
            }
            citations.append(
                {**location, "cited_text": non_empty_text(cited.get("content")) or "", "encrypted_index": ""}
            )
        elif kind == FILE_CITATION:
            citations.append(_file_location(cited))
    return citations


def _file_location(cited: Mapping[str, Any]) -> dict[str, Any]:
    # Other vendors name only the file, so set the location fields to 0.
    kind = str(cited.get("type"))
    kind = kind if kind in CITATION_LOCATIONS else "char_location"
    index = count_at(cited, "document_index") or count_at(cited, "index") or 0
    title = non_empty_text(cited.get("document_title")) or non_empty_text(cited.get("filename"))
    identity = non_empty_text(cited.get("file_id"))
    return {
        "type": kind,
        "cited_text": non_empty_text(cited.get("cited_text")) or "",
        "document_index": index,
        "document_title": title,
        **{name: count_at(cited, name) or 0 for name in CITATION_LOCATIONS[kind]},
        **({"file_id": identity} if identity else {}),
    }


def own_citation(citation: Any) -> dict[str, Any] | None:
    """Return one of Anthropic's citations with the fields that clients require, or None if one of them is missing."""
    if not isinstance(citation, Mapping):
        return None
    stated = {name: value for name, value in citation.items() if value is not None}
    kind = str(stated.get("type"))
    if kind in CITATION_LOCATIONS:
        return {**stated, **_file_location(citation)}
    if kind not in SOURCES or not all(
        isinstance(stated.get(name), expected_type) for name, expected_type in SOURCES[kind].items()
    ):
        return None
    return {**stated, "title": non_empty_text(citation.get("title"))}


def _vendor_block(item: VendorItem) -> dict[str, Any]:
    block = dict(item.value)
    if block.get("type") != "text":
        return block
    cited = block.get("citations")
    citations = [
        completed
        for citation in (cited if isinstance(cited, list) else ())
        if (completed := own_citation(citation)) is not None
    ]
    return {"type": "text", "text": block["text"], **({"citations": citations} if citations else {})}


def media_text(media: Sequence[Media]) -> str:
    """Return references to generated media as text, because Anthropic has no content block for them."""
    return "\n".join(f"[{item.mime_type} {_address(item)}]" for item in media)


def _address(media: Media) -> str:
    return f"{REF_PREFIX}{media.artifact_id}" if media.artifact_id else media.url or "not stored"


def error_json(error: GatewayError, request_id: str) -> dict[str, Any]:
    """Return the error in Anthropic's format, with our code, path and attempts."""
    fields: dict[str, Any] = {"type": error_type(error.status), "message": error.message, "code": error.code}
    if error.param:
        fields["param"] = error.param
    if error.code == THREAD_REFUSED:
        fields["details"] = {"error_code": error.code, "unsupported": []}
    if error.attempts:
        fields["attempts"] = [attempt.as_json() for attempt in error.attempts]
    return {"type": "error", "error": fields, "request_id": request_id}


def error_type(status: int) -> str:
    return ERROR_TYPES.get(status) or ("invalid_request_error" if status < 500 else "api_error")
