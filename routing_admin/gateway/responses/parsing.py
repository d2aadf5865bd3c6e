"""OpenAI's Responses request as our canonical one; what would need us to keep answers is refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool
from capabilities.core.ranges import TEMPERATURE
from capabilities.core.worded import Worded, worded
from routing_admin.gateway.chat.tools import MODES, Choice, read_choice
from routing_admin.gateway.door import SMALL_BYTES, ChatCall, read_wishes
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    Object,
    check_list,
    check_object,
    read_count,
    read_flag,
    read_number,
    read_text,
    refusal_of_choice,
    require_text,
)
from routing_admin.gateway.inner_fields import other_fields
from routing_admin.gateway.media import Find
from routing_admin.gateway.responses.items import RESULTS, WORDS, ItemReader

OURS = frozenset(
    {
        *("model", "input", "instructions", "stream", "stream_options", "task_type", "language", "max_output_tokens"),
        *("temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"),
        *("include", "store", "truncation", "background", "previous_response_id", "conversation", "prompt"),
    }
)
"""Fields that are read here; every other one goes along as it came."""
STATELESS = worded(
    "%(param)s needs answers that are kept, and none are kept here. Send the whole conversation as input."
)
REFUSED: Mapping[str, Worded] = MappingProxyType(
    {
        "previous_response_id": STATELESS,
        "conversation": STATELESS,
        "prompt": worded("%(param)s names a prompt that is stored elsewhere. Send its words as instructions."),
        "background": worded("%(param)s is not possible here: an answer is given to its request. Leave it out."),
        "store": worded("%(param)s is not possible here: answers are not kept. Send false, or leave it out."),
    }
)
"""What is refused where it is asked for, and what to do instead."""
FUNCTION, CUSTOM = "function", "custom"


def parse(body: Object, find: Find) -> ChatCall:
    """The call in a JSON object. Raises `BadRequestError` with `param`."""
    wishes, stream = read_wishes(body), read_flag(body, "stream") or False
    for param, sentence in REFUSED.items():
        if body.get(param) not in (None, False):
            raise BadRequestError(Worded(sentence.template, {"param": param}), param, "unsupported_value")
    return ChatCall(chat_of(body, find), wishes.model, wishes.task_type, wishes.language, stream, True)


def needs_thread(body: Object, size: int) -> bool:
    """Whether reading the items may ask for rows, or look into large files; `size` is that of the body in bytes."""
    items = body.get("input")
    return isinstance(items, list) and any(
        _needs_thread(item, small=size <= SMALL_BYTES) for item in items if isinstance(item, dict)
    )


def _needs_thread(item: Object, *, small: bool) -> bool:
    content = item.get("output") if item.get("type") in RESULTS else item.get("content")
    if isinstance(content, str):
        return item.get("type") in RESULTS and content.lstrip()[:1] == "{"
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return any(part.get("type") not in WORDS and not (small and _is_inline_image(part)) for part in parts)


def _is_inline_image(part: Object) -> bool:
    url = part.get("image_url")
    return part.get("type") == "input_image" and isinstance(url, str) and not url.startswith(REF_PREFIX)


def chat_of(body: Object, find: Find) -> ChatRequest:
    """The canonical request."""
    reader = ItemReader(find)
    choice = _read_choice(body)
    tools = _read_tools(body, reader.inner)
    led = read_text(body, "instructions", "")
    system = (Message(Role.SYSTEM, (TextPart(led),)),) if led else ()
    text = check_object(body.get("text") or {}, "text")
    reader.inner.extend(other_fields(text, {"format", "verbosity"}, "text"))
    return ChatRequest(
        (*system, *reader.read_all(body.get("input"))),
        read_number(body, "temperature", *TEMPERATURE),
        read_count(body, "max_output_tokens"),
        read_number(body, "top_p", 0, 1),
        (),
        tools,
        choice.word,
        choice.name,
        read_flag(body, "parallel_tool_calls"),
        _read_format(text),
        _read_extra(body, text, reader.inner),
        choice.allowed,
        tuple(reader.inner),
    )


def _read_choice(body: Object) -> Choice:
    """The choice among tools; one that names a tool says its name flat."""
    value = body.get("tool_choice")
    if not isinstance(value, dict) or value.get("type") not in (FUNCTION, CUSTOM):
        if isinstance(value, dict) and value.get("type") == "allowed_tools":
            listed = [each for each in check_list(value.get("tools"), "tool_choice.tools") if isinstance(each, dict)]
            named = [require_text(each, "name", "tool_choice.tools") for each in listed if each.get("name")]
            mode = require_text(value, "mode", "tool_choice")
            if mode not in MODES:
                raise refusal_of_choice(MODES, "tool_choice.mode")
            return Choice(mode, None, tuple(named))
        return read_choice({"tool_choice": value})
    return Choice(name=require_text(value, "name", "tool_choice"))


def _read_tools(body: Object, inner: list[str]) -> tuple[Tool, ...]:
    """The caller's tools; those that OpenAI runs itself are named among what is left out."""
    tools = []
    for at, each in enumerate(check_list(body.get("tools") or [], "tools")):
        place = f"tools[{at}]"
        value = check_object(each, place)
        kind = require_text(value, "type", place)
        if kind not in (FUNCTION, CUSTOM):
            inner.append(place)
            continue
        words, name = read_text(value, "description", place) or "", require_text(value, "name", place)
        if kind == CUSTOM:
            inner.append(place)
            tools.append(Tool(name, words, custom=check_object(value.get("format") or {}, f"{place}.format")))
            continue
        schema, strict = check_object(value.get("parameters") or {}, f"{place}.parameters"), read_flag(value, "strict")
        inner += other_fields(value, {"type", "name", "description", "parameters", "strict"}, place)
        tools.append(Tool(name, words, schema, strict))
    return tuple(tools)


def _read_format(text: Object) -> Mapping[str, Any] | None:
    """The shape of the answer, as chat completions say it."""
    if text.get("format") is None:
        return None
    shape = check_object(text["format"], "text.format")
    kind = require_text(shape, "type", "text.format")
    if kind == "text":
        return None
    if kind != "json_schema":
        return {"type": kind}
    schema = {"schema": check_object(shape.get("schema"), "text.format.schema")}
    named = {key: shape[key] for key in ("name", "description", "strict") if shape.get(key) is not None}
    return {"type": kind, "json_schema": {"name": "answer", **named, **schema}}


def _read_extra(body: Object, text: Object, inner: list[str]) -> dict[str, Any]:
    """What goes along as it came, and what chat completions say in a field of their own."""
    extra = {key: value for key, value in body.items() if key not in OURS and value is not None}
    reasoning = check_object(body.get("reasoning") or {}, "reasoning")
    told = {key: value for key, value in reasoning.items() if not (key == "summary" and value == "auto")}
    inner += other_fields(told, {"effort"}, "reasoning")
    effort, verbosity = read_text(reasoning, "effort", "reasoning"), read_text(text, "verbosity", "text")
    extra |= {"reasoning_effort": effort} if effort else {}
    return extra | ({"verbosity": verbosity} if verbosity else {})
