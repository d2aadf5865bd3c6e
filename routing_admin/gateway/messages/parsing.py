"""Parse Anthropic's Messages request into the canonical request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ChatRequest, Message, Part, Role, Tool, VendorItem
from capabilities.core.protocols.anthropic.thinking import imply_effort
from capabilities.core.protocols.vendor_tools import FIELDS, FUNCTION_FIELDS, canonical_tool_name, own_fields
from capabilities.core.translatable import translatable
from routing_admin.gateway.chat_api import SMALL_BYTES, ChatCall, read_routing_options
from routing_admin.gateway.counts import check_counts
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    A_LIST,
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    list_parts,
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
from routing_admin.gateway.messages import blocks
from routing_admin.gateway.messages.blocks import BlockMessageReader
from routing_admin.gateway.messages.rendering import THREAD_REFUSED

PARSED_FIELDS = frozenset(
    {
        *("model", "messages", "system", "stream", "task_type", "language", "max_tokens", "temperature", "top_p"),
        *("stop_sequences", "tools", "tool_choice", "output_config", "output_format"),
    }
)
"""Fields that are parsed here; all other fields are passed on unchanged."""
VENDORS_OWN = FIELDS["anthropic"]
"""Maps fields that belong to Anthropic's accounts, storage and servers to the name of their feature.

Other vendors reject these fields.
"""
BETAS = "betas"
"""Field that lists beta features. Anthropic's SDKs send it as a header; Anthropic's API rejects it as a body field."""
NOT_EXTRA = PARSED_FIELDS | VENDORS_OWN.keys() | {BETAS}
FUNCTION_KEYS = FUNCTION_FIELDS["anthropic"].keys() | {
    *("type", "name", "description", "input_schema", "cache_control", "strict"),
}
NO_THREADS = translatable(
    "Threads are not kept here: a turn that only continues one would reach the model without what came before. Send "
    "the whole conversation without thread."
)
CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}
"""Maps Anthropic's tool choices to canonical tool choices."""


def parse(body: Object, find: Find) -> ChatCall:
    """Return the call that a JSON object describes; raise `BadRequestError` with the invalid field as `param`."""
    routing, stream = read_routing_options(body), read_flag(body, "stream") or False
    check_counts(body, "messages")
    if body.get("thread") is not None:  # After this error, Anthropic's clients send the whole conversation instead.
        raise BadRequestError(NO_THREADS, "thread", THREAD_REFUSED)
    return ChatCall(parse_chat(body, find), routing.model, routing.task_type, routing.language, stream, True)


def needs_thread(body: Object, size: int) -> bool:
    """Return whether reading the messages may query the database or examine large files.

    `size` is the body's size in bytes.
    """
    messages, small = body.get("messages"), size <= SMALL_BYTES
    contents = (
        [message.get("content") for message in messages if isinstance(message, dict)]
        if isinstance(messages, list)
        else []
    )
    return any(blocks.needs_thread(content, small=small) for content in contents)


def parse_chat(body: Object, find: Find) -> ChatRequest:
    reader = BlockMessageReader(find)
    mode, name, parallel = _read_choice(body)
    output = check_object(body.get("output_config") or {}, "output_config")
    tools, vendor = _read_tools(body, reader.inner)
    reader.inner.extend(other_fields(output, {"effort", "format"}, "output_config"))
    messages = (*_read_system(body, reader), *reader.read_all(body.get("messages")))
    return ChatRequest(
        messages,
        read_number(body, "temperature", 0, 1),
        read_count(body, "max_tokens"),
        read_number(body, "top_p", 0, 1),
        _read_stops(body.get("stop_sequences")),
        tools,
        mode,
        name,
        parallel,
        _read_format(output, body),
        _read_extra(body, output),
        inner=(*reader.inner, *([BETAS] if body.get(BETAS) else [])),
        vendor=(
            *vendor,
            *(
                VendorItem(blocks.PROTOCOL, VENDORS_OWN[key], value, key)
                for key, value in body.items()
                if key in VENDORS_OWN and value is not None
            ),
        ),
    )


def _read_system(body: Object, reader: BlockMessageReader) -> tuple[Message, ...]:
    if body.get("system") is None:
        return ()
    parts: list[Part] = []
    for number, block in enumerate(list_parts(body["system"], "system", "text")):
        if block.get("type") != "text":
            raise BadRequestError(
                translatable("%(param)s must be text.", param=f"system[{number}].type"), f"system[{number}].type"
            )
        parts += reader.read_block(block, f"system[{number}]")
    return (Message(Role.SYSTEM, tuple(parts)),) if parts else ()


def _read_stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else check_list(value, "stop_sequences")
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong_type_error(A_LIST, "stop_sequences")
    return tuple(stops)


def _read_tools(body: Object, inner: list[str]) -> tuple[tuple[Tool, ...], list[VendorItem]]:
    tools, vendor = [], []
    for index, tool in enumerate(check_list(body.get("tools") or [], "tools")):
        path = f"tools[{index}]"
        value = check_object(tool, path)
        if value.get("type", "custom") != "custom" and "input_schema" not in value:
            vendor.append(
                VendorItem(blocks.PROTOCOL, canonical_tool_name(require_text(value, "type", path)), value, path)
            )
            continue
        schema = check_object(value.get("input_schema") or {}, f"{path}.input_schema")
        inner += other_fields(value, FUNCTION_KEYS, path)
        name, strict = require_text(value, "name", path), read_flag(value, "strict")
        vendor += own_fields(blocks.PROTOCOL, value, name, path)
        description = read_text(value, "description", path) or ""
        tools.append(Tool(name, description, schema, strict, cache=read_mark(value, path)))
    return tuple(tools), vendor


def _read_choice(body: Object) -> tuple[str | None, str | None, bool | None]:
    # Return the mode, the tool's name, and whether parallel calls are allowed (None for the default).
    if body.get("tool_choice") is None:
        return None, None, None
    choice = check_object(body["tool_choice"], "tool_choice")
    kind = require_text(choice, "type", "tool_choice")
    parallel = False if read_flag(choice, "disable_parallel_tool_use") else None
    if kind == "tool":
        return None, require_text(choice, "name", "tool_choice"), parallel
    if kind not in CHOICES:
        raise invalid_choice_error((*CHOICES, "tool"), "tool_choice.type")
    return CHOICES[kind], None, parallel


def _read_format(output: Object, body: Object) -> Mapping[str, Any] | None:
    # `output_format` is the older name of the field.
    key = "output_config.format" if output.get("format") is not None else "output_format"
    value = output.get("format") if output.get("format") is not None else body.get("output_format")
    if value is None:
        return None
    shape = check_object(value, key)
    schema = check_object(shape.get("schema"), f"{key}.schema")
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def _read_extra(body: Object, output: Object) -> dict[str, Any]:
    # Set the effort in its canonical form as well, which other vendors' models understand.
    extra = {key: value for key, value in body.items() if key not in NOT_EXTRA and value is not None}
    thinking = body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    effort = read_text(output, "effort", "output_config") or imply_effort(budget)
    return extra | ({"reasoning_effort": effort} if effort else {})
