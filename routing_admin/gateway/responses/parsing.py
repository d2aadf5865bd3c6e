"""Parse an OpenAI Responses request into the canonical request, and reject unsupported fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ChatRequest, Message, Role, TextPart, VendorItem
from capabilities.core.protocols.vendor_tools import FIELDS, canonical_tool_name
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import TEMPERATURE
from routing_admin.gateway.chat_api import SMALL_BYTES, ChatCall, read_routing_options
from routing_admin.gateway.counts import check_counts
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    other_fields,
    read_count,
    read_flag,
    read_number,
    read_text,
    require_text,
)
from routing_admin.gateway.media import Find
from routing_admin.gateway.responses.items import RESULTS, TEXT_TYPES, ItemReader
from routing_admin.gateway.responses.references import PREVIOUS, Earlier
from routing_admin.gateway.responses.tools import PROTOCOL, ToolReader, read_flat_choice
from routing_admin.request_log.kept_answers import Turn

PARSED_FIELDS = frozenset(
    {
        *("model", "input", "instructions", "stream", "stream_options", "task_type", "language", "max_output_tokens"),
        *("temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"),
        *("include", "store", "truncation", "background", "previous_response_id", "conversation", "prompt"),
    }
)
"""Fields that are parsed here; all other fields are passed on unchanged."""
VENDORS_OWN = FIELDS[PROTOCOL]
"""Maps fields that belong to OpenAI's accounts, its tools or Codex to their feature. Other vendors reject these fields.
"""
NOT_EXTRA = PARSED_FIELDS | VENDORS_OWN.keys()
STATELESS = translatable(
    "%(param)s is not supported: conversations are not stored here. Send the whole conversation as input."
)
REFUSED: Mapping[str, Translatable] = MappingProxyType(
    {
        PREVIOUS: STATELESS,
        "conversation": STATELESS,
        "prompt": translatable("%(param)s refers to a prompt stored elsewhere. Send its text as instructions."),
        "background": translatable("%(param)s is not supported: answers are returned directly. Leave it out."),
    }
)
"""Maps unsupported fields to messages that say what to do instead."""
NOT_KEPT = translatable("store is not supported: answers are not kept (ROUTING_ADMIN_KEEP_ANSWERS=0). Send false.")
LOGPROBS = "message.output_text.logprobs"
INCLUDED = frozenset({"reasoning.encrypted_content", LOGPROBS})
"""Values of `include` for content that is always included if it is available."""
INCLUDED_OF_TOOLS = re.compile(r"(\w+_call(?:_output)?)\.")
"""Values of `include` that concern tool calls, such as `web_search_call.results`."""


def parse(body: Object, find: Find) -> ChatCall:
    """Return the call that a JSON object describes; raise `BadRequestError` with the invalid field as `param`."""
    routing, stream = read_routing_options(body), read_flag(body, "stream") or False
    check_counts(body, "input")
    previous = body.get(PREVIOUS)
    earlier = previous if isinstance(previous, Earlier) else None
    for param, sentence in REFUSED.items():
        if body.get(param) not in (None, False, earlier):
            raise BadRequestError(Translatable(sentence.template, {"param": param}), param, "unsupported_value")
    store = read_flag(body, "store")
    if store and not settings.KEEP_ANSWERS:
        raise BadRequestError(NOT_KEPT, "store", "unsupported_value")
    is_stored = store is not False and settings.KEEP_ANSWERS > 0
    count = earlier.count if earlier else 0
    reader = ItemReader(find, earlier=count)
    tools = ToolReader(reader.inner, count)
    chat = _read_chat(body, reader, tools)
    return ChatCall(
        chat,
        routing.model,
        routing.task_type,
        routing.language,
        stream,
        True,
        namespaces=tools.namespaces,
        is_stored=is_stored,
        turn=_read_turn(body["input"], earlier) if is_stored else None,
        previous=earlier.id if earlier else None,
    )


def _read_turn(items: Any, earlier: Earlier | None) -> Turn | None:
    # Return the input to store with the answer, so that a later request can continue the conversation. Earlier items
    # are already stored.
    if earlier is not None:
        return Turn.of(items, earlier.before, len(items) - earlier.count)
    return Turn.of([{"role": "user", "content": items}] if isinstance(items, str) else items)


def needs_thread(body: Object, size: int) -> bool:
    """Return whether reading the items may query the database or examine large files.

    `size` is the body's size in bytes.
    """
    items = body.get("input")
    return isinstance(items, list) and any(
        _needs_thread(item, small=size <= SMALL_BYTES) for item in items if isinstance(item, dict)
    )


def _needs_thread(item: Object, *, small: bool) -> bool:
    content = item.get("output") if item.get("type") in RESULTS else item.get("content")
    if isinstance(content, str):
        return item.get("type") in RESULTS and content.lstrip()[:1] == "{"
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return any(part.get("type") not in TEXT_TYPES and not (small and _is_inline_image(part)) for part in parts)


def _is_inline_image(part: Object) -> bool:
    url = part.get("image_url")
    return part.get("type") == "input_image" and isinstance(url, str) and not url.startswith(REF_PREFIX)


def _read_chat(body: Object, reader: ItemReader, tool_reader: ToolReader) -> ChatRequest:
    choice = read_flat_choice(body, tool_reader.vendor)
    tools = tool_reader.read_all(body)
    instructions = read_text(body, "instructions", "")
    system = (Message(Role.SYSTEM, (TextPart(instructions),)),) if instructions else ()
    text = check_object(body.get("text") or {}, "text")
    reader.inner.extend(other_fields(text, {"format", "verbosity"}, "text"))
    return ChatRequest(
        (*system, *reader.read_all(body.get("input"))),
        read_number(body, "temperature", *TEMPERATURE),
        read_count(body, "max_output_tokens"),
        read_number(body, "top_p", 0, 1),
        (),
        tools,
        choice.mode,
        choice.name,
        read_flag(body, "parallel_tool_calls"),
        _read_format(text),
        _read_extra(body, text, reader.inner),
        choice.allowed,
        tuple(reader.inner),
        (*tool_reader.vendor, *_list_vendors_own(body)),
    )


def _read_format(text: Object) -> Mapping[str, Any] | None:
    if text.get("format") is None:
        return None
    shape = check_object(text["format"], "text.format")
    kind = require_text(shape, "type", "text.format")
    if kind == "text":
        return None
    if kind != "json_schema":
        return {"type": kind}
    schema = {"schema": check_object(shape.get("schema"), "text.format.schema")}
    options = {key: shape[key] for key in ("name", "description", "strict") if shape.get(key) is not None}
    return {"type": kind, "json_schema": {"name": "answer", **options, **schema}}


def _read_extra(body: Object, text: Object, inner: list[str]) -> dict[str, Any]:
    # Some of these options have separate fields in chat completions.
    extra = {key: value for key, value in body.items() if key not in NOT_EXTRA and value is not None}
    reasoning = check_object(body.get("reasoning") or {}, "reasoning")
    inner += other_fields(reasoning, {"effort", "summary"}, "reasoning")
    inner += _list_left_out(body)
    extra |= {
        "reasoning_effort": read_text(reasoning, "effort", "reasoning"),
        "reasoning_summary": read_text(reasoning, "summary", "reasoning"),
        "verbosity": read_text(text, "verbosity", "text"),
        "logprobs": True if LOGPROBS in check_list(body.get("include") or [], "include") else None,
    }
    return {key: value for key, value in extra.items() if value is not None}


def _list_vendors_own(body: Object) -> Iterator[VendorItem]:
    for key, value in body.items():
        if key in VENDORS_OWN and value is not None:
            yield VendorItem(PROTOCOL, VENDORS_OWN[key], value, key)
    for index, included in enumerate(body.get("include") or []):
        if isinstance(included, str) and (match := INCLUDED_OF_TOOLS.match(included)):
            yield VendorItem(PROTOCOL, canonical_tool_name(match[1]), included, f"include[{index}]")


def _list_left_out(body: Object) -> Iterator[str]:
    # `include` cannot add what an answer does not contain, and the gateway never truncates conversations.
    for index, included in enumerate(check_list(body.get("include") or [], "include")):
        if not isinstance(included, str) or not (included in INCLUDED or INCLUDED_OF_TOOLS.match(included)):
            yield f"include[{index}]"
    if body.get("truncation") not in (None, "disabled"):
        yield "truncation"
