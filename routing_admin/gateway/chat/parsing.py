"""Parse OpenAI's chat request into the canonical request and the routing options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ChatRequest, Tool
from capabilities.core.translatable import translatable
from capabilities.core.values import TEMPERATURE
from routing_admin.gateway.chat.messages import MessageReader
from routing_admin.gateway.chat_api import SMALL_BYTES, ChatCall, read_answer_count, read_routing_options
from routing_admin.gateway.counts import check_counts
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    STRINGS,
    TRUE_OR_FALSE,
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    missing_field_error,
    other_fields,
    read_count,
    read_flag,
    read_mark,
    read_number,
    read_text,
    require_text,
    wrong_type_error,
)
from routing_admin.gateway.media import Find

CHOICES = ("none", "auto", "required")
MODES = ("auto", "required")
FUNCTION, CUSTOM, ALLOWED = "function", "custom", "allowed_tools"
_OF_FUNCTION = frozenset({"name", "description", "parameters"})


@dataclass(frozen=True, slots=True)
class Choice:
    """The tool choice: a mode, the name of one tool, or the names of the allowed tools."""

    mode: str | None = None
    name: str | None = None
    allowed: tuple[str, ...] = ()


NO_CHOICE = Choice()


def read_tools(body: Object, inner: list[str]) -> tuple[Tool, ...]:
    """Return the tools; raise `BadRequestError` if they are invalid.

    Paths of fields that not every protocol supports are added to `inner`.
    """
    if body.get("tools") is None:
        if body.get("functions") is None:
            return ()
        functions = check_list(body["functions"], "functions")
        return tuple(_read_function(function, f"functions[{index}]", inner) for index, function in enumerate(functions))
    return tuple(
        _read_tool(check_object(tool, f"tools[{index}]"), f"tools[{index}]", inner)
        for index, tool in enumerate(check_list(body["tools"], "tools"))
    )


def _read_tool(value: Object, path: str, inner: list[str]) -> Tool:
    kind = require_text(value, "type", path)
    if kind not in (FUNCTION, CUSTOM):
        message = translatable(
            "%(param)s must be function or custom. Other tools are not supported.", param=f"{path}.type"
        )
        raise BadRequestError(message, f"{path}.type")
    inner += other_fields(value, {"type", kind}, path)
    definition_path = f"{path}.{kind}"
    if value.get(kind) is None:
        raise missing_field_error(definition_path)
    return (_read_function if kind == FUNCTION else _read_custom)(value[kind], definition_path, inner, value, path)


def _read_function(value: Any, path: str, inner: list[str], tool: Object | None = None, tool_path: str = "") -> Tool:
    function = check_object(value, path)
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise wrong_type_error(TRUE_OR_FALSE, f"{path}.strict")
    parameters = check_object(function.get("parameters") or {}, f"{path}.parameters")
    # `strict: false` is the default, so dropping it loses nothing.
    inner += other_fields(function, _OF_FUNCTION if strict else _OF_FUNCTION | {"strict"}, path)
    mark = read_mark(tool or {}, tool_path) or read_mark(function, path)
    name = require_text(function, "name", path)
    return Tool(name, read_text(function, "description", path) or "", parameters, strict, cache=mark)


def _read_custom(value: Any, path: str, inner: list[str], tool: Object, tool_path: str) -> Tool:
    custom = check_object(value, path)
    inner += [path, *other_fields(custom, {"name", "description", "format"}, path)]
    shape = check_object(custom.get("format") or {}, f"{path}.format")
    name = require_text(custom, "name", path)
    return Tool(name, read_text(custom, "description", path) or "", custom=shape)


def read_choice(body: Object) -> Choice:
    """Return the tool choice, from the current or the old field; raise `BadRequestError` if it is invalid."""
    param = "tool_choice" if body.get("tool_choice") is not None else "function_call"
    value = body.get(param)
    if value is None:
        return NO_CHOICE
    if isinstance(value, str):
        if value not in CHOICES:
            message = translatable(
                "%(name)s must be one of %(choices)s, or name a function.", name=param, choices=CHOICES
            )
            raise BadRequestError(message, param)
        return Choice(value)
    choice = check_object(value, param)
    if param == "function_call":
        return Choice(name=require_text(choice, "name", param))
    if choice.get("type") == ALLOWED:
        return _read_allowed(choice)
    return Choice(name=_read_name(choice, param))


def _read_name(value: Object, path: str) -> str:
    kind = CUSTOM if value.get("type") == CUSTOM else FUNCTION
    return require_text(check_object(value.get(kind), f"{path}.{kind}"), "name", f"{path}.{kind}")


def _read_allowed(choice: Object) -> Choice:
    # Entries of the allowed tools may lack the nested object, as in the Responses API.
    path = f"tool_choice.{ALLOWED}"
    allowed = check_object(choice.get(ALLOWED) or choice, path)
    mode = require_text(allowed, "mode", path)
    if mode not in MODES:
        raise invalid_choice_error(MODES, f"{path}.mode")
    tools = check_list(allowed.get("tools"), f"{path}.tools")
    names = []
    for number, tool in enumerate(tools):
        tool_path = f"{path}.tools[{number}]"
        names.append(_read_name(check_object(tool, tool_path), tool_path))
    return Choice(mode, None, tuple(names))


PARSED_FIELDS = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "task_type", "language", "temperature", "top_p", "stop"),
        *("max_tokens", "max_completion_tokens", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("functions", "function_call", "n"),
    }
)
"""Fields that are parsed here; all other fields are passed on unchanged."""
TEXT_TYPES = ("text", "refusal")
MEDIA = {"image_url": "url", "video_url": "url", "input_audio": "data"}
"""Maps each type of media part to the field that contains its data."""


def parse(body: Object, find: Find) -> ChatCall:
    """Return the call that a JSON object describes; raise `BadRequestError` with the invalid field as `param`."""
    routing = read_routing_options(body)
    check_counts(body, "messages")
    options = check_object(body.get("stream_options") or {}, "stream_options")
    chat = parse_chat(body, find)
    stream = read_flag(body, "stream") or False
    include_usage, old_calls = read_flag(options, "include_usage") or False, bool(chat.tools) and not body.get("tools")
    call = ChatCall(chat, routing.model, routing.task_type, routing.language, stream, include_usage, old_calls)
    count = read_answer_count(body, "n") if "n" in body else 1
    return call if count == 1 else replace(call, count=count)


def needs_thread(body: Object, size: int) -> bool:
    """Return whether reading the messages may query the database or examine more than a small file.

    `size` is the body's size in bytes. Invalid messages need no thread, because they are refused immediately.
    """
    messages = body.get("messages")
    return isinstance(messages, list) and any(
        _needs_thread(message, size) for message in messages if isinstance(message, dict)
    )


def _needs_thread(message: Object, size: int) -> bool:
    content, from_tool = message.get("content"), message.get("role") == "tool"
    if isinstance(content, str):
        return from_tool and content.lstrip()[:1] == "{"
    if not isinstance(content, list):
        return False
    return from_tool or not all(_is_at_hand(part, size) for part in content if isinstance(part, dict))


def _is_at_hand(part: Object, size: int) -> bool:
    # Return True for text, and for small media that the request itself contains.
    kind = part.get("type")
    if kind in TEXT_TYPES:
        return True
    if not isinstance(kind, str) or kind not in MEDIA:
        return False
    inner = part.get(kind)
    data = inner.get(MEDIA[kind]) if isinstance(inner, dict) else inner
    return isinstance(data, str) and not data.startswith(REF_PREFIX) and size <= SMALL_BYTES


def parse_chat(body: Object, find: Find) -> ChatRequest:
    reader = MessageReader(find)
    choice = read_choice(body)
    shape = body.get("response_format")
    if shape is not None:
        require_text(check_object(shape, "response_format"), "type", "response_format")
    limit, old_limit = _read_limit(body, "max_completion_tokens"), _read_limit(body, "max_tokens")
    messages = reader.read_all(body.get("messages"))
    return ChatRequest(
        messages,
        read_number(body, "temperature", *TEMPERATURE),
        # `max_completion_tokens` is OpenAI's newer name and takes precedence.
        limit if limit is not None else old_limit,
        read_number(body, "top_p", 0, 1),
        _read_stop(body.get("stop")),
        read_tools(body, reader.inner),
        choice.mode,
        choice.name,
        read_flag(body, "parallel_tool_calls"),
        shape,
        {key: value for key, value in body.items() if key not in PARSED_FIELDS and value is not None},
        choice.allowed,
        (*reader.inner, *_list_options(body["stream_options"])) if "stream_options" in body else tuple(reader.inner),
    )


def _read_limit(body: Object, key: str) -> int | None:
    # LM Studio's clients send -1 for "no limit".
    return None if body.get(key) == -1 else read_count(body, key)


def _list_options(options: Any) -> list[str]:
    return other_fields(options, {"include_usage"}, "stream_options") if isinstance(options, dict) else []


def _read_stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong_type_error(STRINGS, "stop")
    return tuple(stops)
