"""Render answers in the format of OpenAI's Responses API: a response and its output items."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ChatRequest, ToolCall, VendorItem
from capabilities.core.protocols.answer_fields import (
    FILE_CITATION,
    SERVICE_TIERS,
    URL_CITATION,
    count_at,
    non_empty_text,
)
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Annotation, Answer, Media, Usage
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.reasoning_signatures import pack_thoughts
from routing_admin.gateway.responses.tools import PROTOCOL
from routing_admin.platform.server.request_id import new_id

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Maps finish reasons of incomplete answers to their names in the Responses API."""
NO_NAMESPACES: Mapping[str, tuple[str, str]] = MappingProxyType({})
ERROR_CODES: Mapping[int, str] = MappingProxyType({408: "server_error", 429: "rate_limit_exceeded"})
"""Maps statuses to OpenAI's error codes; any other 4xx is an invalid prompt, any other 5xx a server error."""
SAMPLING_DEFAULT = 1.0
"""OpenAI's default for `temperature` and `top_p`, which must be numbers in a response."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Fields that all events of a response share: the model, the time, and the request's parameters."""

    model: str
    chat: ChatRequest
    stored: bool = False
    previous: str | None = None
    id: str = field(default_factory=lambda: new_id("resp_"))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def key(self) -> str:
        """The part that the response's id and its items' ids have in common."""
        return self.id.partition("_")[2]

    def item_id(self, prefix: str, index: int) -> str:
        return f"{prefix}{self.key}{index:02x}"

    def write(self, status: str, output: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        chat = self.chat
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": chat.max_tokens,
            "max_tool_calls": None,
            "model": self.model,
            "output": list(output),
            "parallel_tool_calls": chat.parallel_tool_calls is not False,
            "previous_response_id": self.previous,
            "reasoning": {
                "effort": chat.extra.get("reasoning_effort"),
                "summary": chat.extra.get("reasoning_summary"),
            },
            "store": self.stored,
            "temperature": SAMPLING_DEFAULT if chat.temperature is None else chat.temperature,
            "text": {"format": _format_json(chat.response_format)},
            "tool_choice": chat.tool_choice or "auto",
            "tools": [],
            "top_p": SAMPLING_DEFAULT if chat.top_p is None else chat.top_p,
            "top_logprobs": chat.extra.get("top_logprobs") or 0,
            "presence_penalty": chat.extra.get("presence_penalty") or 0,
            "frequency_penalty": chat.extra.get("frequency_penalty") or 0,
            "truncation": "disabled",
            "usage": None,
            "metadata": chat.extra.get("metadata") or {},
            "service_tier": "default",
            "safety_identifier": chat.extra.get("safety_identifier"),
            "prompt_cache_key": chat.extra.get("prompt_cache_key"),
            **more,
        }

    def write_end(
        self, finish_reason: str, usage: Usage, output: Sequence[dict[str, Any]], tier: str | None = None
    ) -> dict[str, Any]:
        """Return the response at the end of the answer: completed, or incomplete with the reason."""
        more = {"usage": usage_json(usage), "service_tier": tier if tier in SERVICE_TIERS else "default"}
        if reason := INCOMPLETE.get(finish_reason):
            return self.write("incomplete", output, incomplete_details={"reason": reason}, **more)
        return self.write("completed", output, completed_at=int(time.time()), **more)


def _format_json(response_format: Mapping[str, Any] | None) -> dict[str, Any]:
    # Clients read the requested format from the response in order to parse its text.
    shape = (response_format or {}).get("json_schema")
    kind = (response_format or {}).get("type", "text")
    if not isinstance(shape, Mapping):
        return {"type": kind}
    return {"type": kind, "description": None, **shape, "strict": bool(shape.get("strict"))}


def response_json(answer: Answer, call: ChatCall, model: str, origin: str) -> dict[str, Any]:
    """Return a complete answer as a response; its items are stored if the call allows it."""
    head = ResponseHead(model, call.chat, call.keep is not None, call.previous)
    items = [item for item in answer.vendor if item.protocol == PROTOCOL]
    output = _list_leading_items(answer, [item for item in items if not _follows(item, answer)], head, origin)
    text = answer.text + media_text(answer.media, before=answer.text)
    if text or answer.refusal or not answer.tool_calls:
        message = message_item(head.item_id("msg_", len(output)), text, answer.refusal or "", answer.annotations)
        if answer.logprobs and text:
            message["content"][0]["logprobs"] = list_logprobs(answer.logprobs)
        output.append(message)
    output += [item.value for item in items if _follows(item, answer)]
    images, calls = [item for item in answer.media if is_image(item)], answer.tool_calls
    output += [image_item(head.item_id("ig_", index), image) for index, image in enumerate(images, len(output))]
    output += [
        call_item(head.item_id("fc_", index), tool_call, call.namespaces)
        for index, tool_call in enumerate(calls, len(output))
    ]
    if call.keep is not None:
        call.keep(head.key, without_images(output))
    return head.write_end(answer.finish_reason, answer.usage, output, answer.details.service_tier)


def _follows(item: VendorItem, answer: Answer) -> bool:
    return bool(answer.text) and item.offset >= len(answer.text)


def _list_leading_items(
    answer: Answer, items: Sequence[VendorItem], head: ResponseHead, origin: str
) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    text, start = answer.reasoning or "", 0
    for item in [*items, None]:
        end = len(answer.thoughts) if item is None else item.thoughts
        if text or answer.thoughts[start:end]:
            identity = head.item_id("rs_", len(output))
            output.append(reasoning_item(identity, text, answer.thoughts[start:end], origin))
            text, start = "", max(start, end)
        output += [] if item is None else [item.value]
    return output


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return the token counts; unknown ones are 0, because clients require a number in a finished response."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    total = usage.total_tokens if usage.total_tokens is not None else (prompt or 0) + (completion or 0)
    cached = {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    short, long = usage.cache_write_30m_tokens, usage.cache_write_12h_tokens
    cache_writes = {"cache_write_tokens_details": {"ttl_30m_tokens": short or 0, "ttl_12h_tokens": long or 0}}
    return {
        "input_tokens": prompt or 0,
        "input_tokens_details": cached if short is None and long is None else {**cached, **cache_writes},
        "output_tokens": completion or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": total,
    }


def error_json(error: GatewayError, request_id: str) -> dict[str, Any]:
    """Return why a response failed, with OpenAI's error code, and with our own code as the type."""
    code = ERROR_CODES.get(error.status) or ("invalid_prompt" if error.status < 500 else "server_error")
    return {"code": code, "message": error.message, "type": error.code, "request_id": request_id}


def reasoning_item(identity: str, text: str, thoughts: Sequence[ReasoningBlock], origin: str) -> dict[str, Any]:
    """Return a reasoning item: a readable summary, and opaque data that the next turn must send back to its model."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    packed = {"encrypted_content": pack_thoughts(thoughts, origin)} if thoughts else {}
    return {"id": identity, "type": "reasoning", "summary": summary, **packed}


def message_item(
    identity: str, text: str, refusal: str = "", annotations: Sequence[Annotation] = (), status: str = "completed"
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [text_part(text, annotations)] if text or not refusal else []
    content += [{"type": "refusal", "refusal": refusal}] if refusal else []
    return {"id": identity, "type": "message", "role": "assistant", "status": status, "content": content}


def text_part(text: str, annotations: Sequence[Annotation] = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list_cited(annotations), "logprobs": []}


def list_cited(annotations: Sequence[Annotation]) -> list[dict[str, Any]]:
    """Return a citation for each web page or file among the sources; clients know no other types."""
    sources = []
    for annotation in annotations:
        kind = str(annotation.get("type"))
        inner = annotation.get(kind)
        cited = dict(inner) if isinstance(inner, Mapping) else {}
        if kind == FILE_CITATION:
            title = non_empty_text(cited.get("filename")) or non_empty_text(cited.get("title")) or ""
            index = count_at(cited, "index") or count_at(cited, "document_index") or 0
            cited |= {"file_id": non_empty_text(cited.get("file_id")) or "", "filename": title, "index": index}
        if kind in (URL_CITATION, FILE_CITATION):
            stated = {name: value for name, value in cited.items() if value is not None}
            sources.append({**stated, "type": kind})
    return sources


def list_logprobs(logprobs: Mapping[str, Any] | None) -> list[Any]:
    tokens = logprobs.get("content") if logprobs else None
    return list(tokens) if isinstance(tokens, list) else []


def call_item(
    identity: str, call: ToolCall, namespaces: Mapping[str, tuple[str, str]] = NO_NAMESPACES, status: str = "completed"
) -> dict[str, Any]:
    """Return a tool call with the tool's own name, and with the tool's namespace if there is one."""
    kind, key = ("custom_tool_call", "input") if call.custom else ("function_call", "arguments")
    namespace, name = namespaces.get(call.name, ("", call.name))
    grouped = {"namespace": namespace} if namespace else {}
    head = {"id": identity, "type": kind, "status": status, "call_id": call.id, "name": name}
    return {**head, **grouped, key: call.arguments}


def is_image(media: Media) -> bool:
    """Return whether this is an image whose bytes are available, which becomes a separate output item."""
    return media.kind is Kind.IMAGE and bool(media.data)


def image_item(identity: str, media: Media) -> dict[str, Any]:
    return {"id": identity, "type": "image_generation_call", "status": "completed", "result": media.data}


def without_images(output: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the output items in the form in which they are stored.

    Image bytes are omitted: they are stored as artifacts, and no other model receives them.
    """
    return [{**item, "result": None} if "result" in item else item for item in output]


def media_text(media: Sequence[Media], before: str = "") -> str:
    """Return references to all media except images, one per line, to be appended to the text `before`."""
    lines = [f"[{item.mime_type} {_address(item)}]" for item in media if not is_image(item)]
    return "".join(f"\n{line}" if before or index else line for index, line in enumerate(lines))


def _address(media: Media) -> str:
    return f"{REF_PREFIX}{media.artifact_id}" if media.artifact_id else media.url or "not stored"
