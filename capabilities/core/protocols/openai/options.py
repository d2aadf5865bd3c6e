"""Build the parameters of a Chat Completions request: tools, answer format and cache breakpoints.

Parameters that are dropped are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capabilities.core.message import CacheBreakpoint, ChatRequest, TextPart, Tool
from capabilities.core.protocols.answer_fields import split_params
from capabilities.core.protocols.parameters import BREAKPOINT_NAMES, GEMINIS, dropped_fields, list_unsent
from capabilities.core.protocols.schema import wants_json
from capabilities.core.providers.quirks import limit_name, quirk, unwanted_params

# Payload fields that a caller's extra parameters must not replace.
GATEWAY_PARAMETERS = frozenset({"model", "messages", "stream", "stream_options"})
# Parameters that exist only in OpenAI's Responses API or Gemini's API.
NOT_IN_CHAT = frozenset({"reasoning_summary", *GEMINIS})
# Extra parameters that are never passed on.
NOT_PASSED = GATEWAY_PARAMETERS | NOT_IN_CHAT
IMAGE_DETAIL, FILE_DETAIL = "messages[].content[].image_url.detail", "messages[].content[].file.detail"
# Fields of a `thinking` object that hosts other than Anthropic accept: whether thinking is enabled, and for GLM whether
# previous thinking is cleared.
THINKING_FIELDS = frozenset({"type", "clear_thinking"})
FIVE_MINUTES, THIRTY_MINUTES = 300, 1800


def build_parameters(
    chat: ChatRequest, quirks: Mapping[str, Any], *, stream: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return all payload fields except the model and the messages, and the names of dropped parameters."""
    fields: dict[str, Any] = {name: value for name, value in chat.extra.items() if name not in NOT_PASSED}
    fields |= {"temperature": chat.temperature, "top_p": chat.top_p, "stop": list(chat.stop) or None}
    fields |= _tools(chat, quirks) | {"response_format": _response_format(chat, quirks)}
    fields[limit_name(quirks)] = chat.max_tokens
    fields = {name: value for name, value in fields.items() if value is not None}
    refused = unwanted_params(quirks)
    if "cache_control" in fields and quirk(quirks, "cache_marks") != "cache_control":
        refused |= {"cache_control"}
    if chat.extra:
        refused |= set(_list_anthropics(chat.extra))
    if not quirk(quirks, "sampling"):
        refused |= {"temperature", "top_p"}
    remaining, dropped = split_params(fields, refused)
    if stream:
        remaining["stream"] = True
        unwanted = chat.extra.get("stream_options", True) is None or "stream_options" in refused
        if quirk(quirks, "stream_usage") and not unwanted:
            remaining["stream_options"] = {"include_usage": True}
    if not NOT_IN_CHAT.isdisjoint(chat.extra):
        dropped += list_unsent(chat, chat.extra.keys() - NOT_IN_CHAT)
    if chat.inner:
        dropped += (*dropped_fields(chat, "openai", _unsupported(quirks)), *_list_empty_breakpoints(chat))
    return remaining, dropped


def _list_anthropics(extra: Mapping[str, Any]) -> Iterator[str]:
    # Claude Code sends these parameters in a form that only Anthropic accepts, so other hosts would reject the request.
    thinking, metadata = extra.get("thinking"), extra.get("metadata")
    if isinstance(thinking, Mapping) and (thinking.get("type") == "adaptive" or not set(thinking) <= THINKING_FIELDS):
        yield "thinking"
    if isinstance(metadata, Mapping) and set(metadata) == {"user_id"} and not extra.get("store"):
        yield "metadata"


def _unsupported(quirks: Mapping[str, Any]) -> frozenset[str]:
    is_text_only = quirk(quirks, "string_content_only")
    return frozenset(
        (
            *(BREAKPOINT_NAMES if is_text_only or quirk(quirks, "cache_marks") == "none" else ()),
            *([IMAGE_DETAIL] if is_text_only or quirk(quirks, "image_url_as_string") else ()),
            *([FILE_DETAIL] if is_text_only or quirk(quirks, "file_part") != "openai_file" else ()),
        )
    )


def _list_empty_breakpoints(chat: ChatRequest) -> Iterator[str]:
    for message in chat.messages:
        for part in message.parts:
            # A message that consists only of tool calls has no text to which a cache breakpoint could be attached.
            if part.cache and isinstance(part, TextPart) and not part.text:
                yield part.cache.path


def _response_format(chat: ChatRequest, quirks: Mapping[str, Any]) -> Mapping[str, Any] | None:
    structured = quirk(quirks, "structured")
    if not wants_json(chat.response_format) or structured == "json_schema":
        return chat.response_format
    return {"type": "json_object"} if structured == "json_object" else None


def _tools(chat: ChatRequest, quirks: Mapping[str, Any]) -> dict[str, Any]:
    # Without any tools, a tool choice would be rejected.
    if not chat.tools:
        return {}
    choice: Any = chat.tool_choice
    if chat.tool_name:
        choice = _named(chat.tool_name, chat.tools)
    elif chat.allowed_tools:
        allowed = [_named(name, chat.tools) for name in chat.allowed_tools]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": choice or "auto", "tools": allowed}}
    tools = [_tool(tool, quirks) for tool in chat.tools]
    return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": chat.parallel_tool_calls}


def _named(name: str, tools: tuple[Tool, ...]) -> dict[str, Any]:
    kind = "custom" if any(tool.name == name and tool.custom is not None for tool in tools) else "function"
    return {"type": kind, kind: {"name": name}}


def _tool(tool: Tool, quirks: Mapping[str, Any]) -> dict[str, Any]:
    if tool.custom is None:
        return {"type": "function", "function": _function(tool), **encode_breakpoint(tool.cache, quirks)}
    described = {"description": tool.description} if tool.description else {}
    shaped = {"format": tool.custom} if tool.custom else {}
    return {"type": "custom", "custom": {"name": tool.name, **described, **shaped}}


def encode_breakpoint(mark: CacheBreakpoint | None, quirks: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cache breakpoint in the host's format, or {} if the host does not support cache breakpoints."""
    dialect = quirk(quirks, "cache_marks") if mark else "none"
    if mark is None or dialect == "none":
        return {}
    names = ("5m", "1h", FIVE_MINUTES) if dialect == "cache_control" else ("30m", "12h", THIRTY_MINUTES)
    ttl = {} if mark.seconds is None else {"ttl": names[0] if mark.seconds <= names[2] else names[1]}
    return {dialect: {"type": "ephemeral", **ttl} if dialect == "cache_control" else {"mode": "explicit", **ttl}}


def _function(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return function
