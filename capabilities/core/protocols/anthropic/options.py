"""Build the parameters of an Anthropic request: sampling, tools and cache breakpoints. Report dropped parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from capabilities.core.message import CacheBreakpoint, ChatRequest, Tool
from capabilities.core.protocols.answer_fields import split_params
from capabilities.core.protocols.anthropic.thinking import Thinking, build_thinking
from capabilities.core.protocols.custom_tools import as_function
from capabilities.core.protocols.parameters import dropped_fields, list_unsent
from capabilities.core.protocols.schema import find_schema
from capabilities.core.protocols.vendor_tools import add_tools, fields_among
from capabilities.core.providers.quirks import quirk, unwanted_params
from capabilities.core.wire import Target

# Value of the required field `max_tokens` if neither the request nor the model's configuration sets a limit.
MAX_TOKENS = 4096
FIVE_MINUTES = 300
# Maximum number of cache breakpoints in a request. Anthropic rejects a request with five.
MAX_BREAKPOINTS = 4


def build_parameters(
    chat: ChatRequest, target: Target, quirks: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return all payload fields except the messages, and the names of the parameters that are not sent."""
    refused = unwanted_params(quirks, "anthropic")
    thinking = build_thinking(chat, target, refused)
    # Sampling parameters cannot be combined with thinking.
    sampling = quirk(quirks, "sampling", "anthropic") and not thinking.is_on
    fields, dropped = split_params(_options(chat, quirks, refused, thinking, sampling=sampling), refused)
    fields["max_tokens"] = chat.max_tokens or target.max_output_tokens or MAX_TOKENS
    # Thinking tokens count towards `max_tokens`, which must be higher than the thinking budget.
    if thinking.budget >= fields["max_tokens"] and chat.max_tokens is None:
        fields["max_tokens"] = thinking.budget + MAX_TOKENS
    left_out = _list_left_out(chat, refused, thinking, sampling=sampling)
    return fields, (*dropped, *left_out, *dropped_fields(chat, "anthropic"))


def _options(
    chat: ChatRequest, quirks: Mapping[str, Any], refused: set[str], thinking: Thinking, *, sampling: bool
) -> dict[str, Any]:
    stops = [stop for stop in chat.stop if stop.strip()]
    fields: dict[str, Any] = {"stop_sequences": stops} if stops and "stop" not in refused else {}
    if sampling:
        fields |= _sampling(chat)
    tools = add_tools([_tool(tool) for tool in _sent_tools(chat)], chat.vendor)
    if tools:
        fields |= {"tools": tools, "tool_choice": _choice(chat, [tool.get("name") for tool in tools])}
    if chat.extra:
        fields |= {name: value(chat.extra[name]) for name, value in EXTRAS.items() if name in chat.extra}
    output = _output(chat, quirks, thinking)
    fields |= {**thinking.fields, "output_config": output or None, **fields_among(chat.vendor)}
    return {name: value for name, value in fields.items() if value is not None}


def _sampling(chat: ChatRequest) -> dict[str, Any]:
    # Anthropic's range is 0 to 1, and newer models reject top_p together with temperature.
    if chat.temperature is not None:
        return {"temperature": min(max(chat.temperature, 0.0), 1.0)}
    top = {"top_p": chat.top_p} if chat.top_p is not None else {}
    return {**top, **({"top_k": chat.extra["top_k"]} if chat.extra.get("top_k") is not None else {})}


def _output(chat: ChatRequest, quirks: Mapping[str, Any], thinking: Thinking) -> dict[str, Any]:
    schema = find_schema(chat.response_format)
    output: dict[str, Any] = {}
    if schema is not None and takes_schema(quirks):
        output["format"] = {"type": "json_schema", "schema": schema}
    return {**output, "effort": thinking.effort} if thinking.effort else output


def rules_out_prefill(parameters: Mapping[str, Any]) -> bool:
    """Return whether thinking or a schema is requested, which prevents Claude from continuing an assistant message.

    Source: Anthropic's pages prefill-claudes-response and structured-outputs (2026-11-24).
    """
    thinks = parameters.get("thinking", {}).get("type") not in (None, "disabled")
    return thinks or "format" in parameters.get("output_config", {})


def takes_schema(quirks: Mapping[str, Any]) -> bool:
    return bool(quirk(quirks, "structured", "anthropic") == "json_schema")


def _list_left_out(chat: ChatRequest, refused: set[str], thinking: Thinking, *, sampling: bool) -> tuple[str, ...]:
    left_out: list[str] = []
    if chat.temperature is not None and not sampling:
        left_out.append("temperature")
    if chat.top_p is not None and (not sampling or chat.temperature is not None):
        left_out.append("top_p")
    if chat.stop and ("stop" in refused or any(not stop.strip() for stop in chat.stop)):
        left_out.append("stop")
    if not chat.extra:
        return tuple(left_out)
    expressed = {
        "reasoning_effort": not thinking.dropped,
        "top_k": sampling and chat.temperature is None,
        **{name: name in refused or write(chat.extra.get(name)) is not None for name, write in EXTRAS.items()},
        "thinking": thinking.uses_own,
    }
    return (*left_out, *list_unsent(chat, {name for name, is_expressed in expressed.items() if is_expressed}))


def _tier(value: Any) -> str | None:
    # Anthropic's name for OpenAI's tier `default` is `standard_only`.
    return {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}.get(str(value))


def _metadata(value: Any) -> Mapping[str, Any] | None:
    # Anthropic accepts only `user_id`. An object with other fields is dropped and reported.
    return value if isinstance(value, Mapping) and set(value) == {"user_id"} else None


def _request_breakpoint(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


# Caller parameters for which Anthropic has a field, with the functions that convert them. A function returns None if it
# cannot convert the value.
EXTRAS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"service_tier": _tier, "metadata": _metadata, "cache_control": _request_breakpoint}
)


def _sent_tools(chat: ChatRequest) -> list[Tool]:
    allowed = chat.allowed_tools
    return [as_function(tool) for tool in chat.tools if not allowed or tool.name in allowed]


def keep_last_breakpoints(chat: ChatRequest) -> tuple[ChatRequest, tuple[str, ...]]:
    """Keep only the last cache breakpoints, as many as Anthropic accepts.

    Also return the paths of the removed ones.
    """
    marks = [tool.cache for tool in chat.tools] + [part.cache for message in chat.messages for part in message.parts]
    set_marks = [mark for mark in marks if mark]
    max_marks = MAX_BREAKPOINTS - ("cache_control" in chat.extra)
    if len(set_marks) <= max_marks:
        return chat, ()
    dropped_ids = {id(mark) for mark in set_marks[:-max_marks]}
    tools = tuple(replace(tool, cache=None) if id(tool.cache) in dropped_ids else tool for tool in chat.tools)
    messages = tuple(
        replace(
            message,
            parts=tuple(replace(part, cache=None) if id(part.cache) in dropped_ids else part for part in message.parts),
        )
        for message in chat.messages
    )
    return replace(chat, tools=tools, messages=messages), tuple(mark.path for mark in set_marks[:-max_marks])


def cache_control(mark: CacheBreakpoint | None) -> dict[str, Any]:
    """Return a cache breakpoint in Anthropic's format.

    It lasts one hour if more than five minutes are requested, otherwise five minutes.
    """
    if mark is None:
        return {}
    ttl = {} if mark.seconds is None else {"ttl": "5m" if mark.seconds <= FIVE_MINUTES else "1h"}
    return {"cache_control": {"type": "ephemeral", **ttl}}


def _tool(tool: Tool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:
        out["description"] = tool.description
    out["input_schema"] = {"type": "object", "properties": {}, **tool.parameters}
    if tool.strict is not None:
        out["strict"] = tool.strict
    return {**out, **cache_control(tool.cache)} if tool.cache else out


def _choice(chat: ChatRequest, names: Collection[Any]) -> dict[str, Any] | None:
    kinds = {"none": "none", "auto": "auto", "required": "any"}
    choice: dict[str, Any] | None = {"type": kinds[chat.tool_choice]} if chat.tool_choice in kinds else None
    if chat.tool_name:
        choice = {"type": "tool", "name": chat.tool_name} if chat.tool_name in names else None
    # In Anthropic's API, a field of the tool choice disables parallel calls.
    if chat.parallel_tool_calls is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return choice
