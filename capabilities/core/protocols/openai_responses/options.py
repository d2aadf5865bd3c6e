"""Build the parameters of a Responses request: tools, answer format and reasoning. Report dropped parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from capabilities.core.message import CacheBreakpoint, ChatRequest, TextPart, Tool
from capabilities.core.protocols.answer_fields import split_params
from capabilities.core.protocols.parameters import BREAKPOINT_NAMES, dropped_fields, list_unsent
from capabilities.core.protocols.schema import find_schema, wants_json
from capabilities.core.protocols.vendor_tools import add_tools, fields_among
from capabilities.core.providers.quirks import quirk, unwanted_params

PROTOCOL = "openai-responses"
# OpenAI rejects a lower limit, so if one is requested, this one is sent instead (API reference: max_output_tokens).
MIN_TOKENS = 16
ENCRYPTED, LOGPROBS = "reasoning.encrypted_content", "message.output_text.logprobs"
# Models that reject requests for encrypted reasoning.
NON_REASONING_MODELS = re.compile(r"(^|/)(gpt-[34]|chatgpt|computer-use)|-chat(-|$)")
# Parameters that have the same name in the Responses API and are passed on unchanged.
PASSED = (
    *("metadata", "moderation", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    *("safety_identifier", "service_tier", "store", "top_logprobs", "user"),
)
# Extra request parameters for which the Responses API has a field.
MAPPED_PARAMETERS = (*PASSED, "reasoning", "reasoning_effort", "reasoning_summary", "verbosity", "logprobs")
# Parameters that become part of the `reasoning` object, each with the type that its value must have.
KINDS: Mapping[str, type] = {"reasoning": Mapping, "reasoning_effort": str, "reasoning_summary": str}
THIRTY_MINUTES = 1800


def build_parameters(
    chat: ChatRequest, model: str, quirks: Mapping[str, Any], *, stream: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return all payload fields except the model and the items, and the names of dropped parameters."""
    refused = unwanted_params(quirks, PROTOCOL)
    extra = {name: value for name, value in chat.extra.items() if name not in refused}
    fields_all: dict[str, Any] = {"store": False, **{name: extra[name] for name in PASSED if name in extra}}
    fields_all |= {"temperature": chat.temperature, "top_p": chat.top_p, "parallel_tool_calls": _parallel(chat)}
    fields_all["max_output_tokens"] = None if chat.max_tokens is None else max(chat.max_tokens, MIN_TOKENS)
    fields_all |= {"reasoning": _reasoning(extra), "text": _text(chat, extra, quirks)}
    fields_all["include"] = _include(extra, model, chat) or None
    fields_all |= {**_tools(chat), **fields_among(chat.vendor)}
    set_fields = {name: value for name, value in fields_all.items() if value is not None}
    if not quirk(quirks, "sampling", PROTOCOL):
        refused |= {"temperature", "top_p"}
    fields, dropped = split_params(set_fields, refused)
    if stream:
        fields["stream"] = True
    left_out = (*dropped, *(["stop"] if chat.stop else []), *list_unsent(chat, _sendable(extra)))
    if chat.inner:
        left_out += (*dropped_fields(chat, PROTOCOL, _unsupported(quirks)), *_list_empty_breakpoints(chat))
    return fields, left_out


def _sendable(extra: Mapping[str, Any]) -> set[str]:
    return {
        name
        for name, value in extra.items()
        if name in MAPPED_PARAMETERS and isinstance(value, KINDS.get(name, object))
    }


def _unsupported(quirks: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(BREAKPOINT_NAMES if quirk(quirks, "cache_marks") != "prompt_cache_breakpoint" else ())


def _list_empty_breakpoints(chat: ChatRequest) -> Iterator[str]:
    for message in chat.messages:
        for part in message.parts:
            # Assistant text and empty text cannot have a cache breakpoint.
            if part.cache and isinstance(part, TextPart) and (message.role == "assistant" or not part.text):
                yield part.cache.path


def encode_breakpoint(mark: CacheBreakpoint | None, quirks: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cache breakpoint in OpenAI's format, or {} if the host does not support cache breakpoints."""
    if mark is None or quirk(quirks, "cache_marks") != "prompt_cache_breakpoint":
        return {}
    ttl = {} if mark.seconds is None else {"ttl": "30m" if mark.seconds <= THIRTY_MINUTES else "12h"}
    return {"prompt_cache_breakpoint": {"mode": "explicit", **ttl}}


def _parallel(chat: ChatRequest) -> bool | None:
    return chat.parallel_tool_calls if chat.tools or chat.vendor else None


def _reasoning(extra: Mapping[str, Any]) -> dict[str, Any] | None:
    reasoning_object = extra.get("reasoning")
    values = {"effort": extra.get("reasoning_effort"), "summary": extra.get("reasoning_summary")}
    settings = {name: setting for name, setting in values.items() if isinstance(setting, str)}
    return {**(reasoning_object if isinstance(reasoning_object, Mapping) else {}), **settings} or None


def _text(chat: ChatRequest, extra: Mapping[str, Any], quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    out = {"format": _format(chat, quirks), "verbosity": extra.get("verbosity")}
    return {name: value for name, value in out.items() if value is not None} or None


def _format(chat: ChatRequest, quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    shape, structured = chat.response_format, quirk(quirks, "structured", PROTOCOL)
    if shape is None or not wants_json(shape) or structured == "prompt":
        return None
    if find_schema(shape) is None:
        return {"type": str(shape.get("type"))}
    if structured == "json_object":
        return {"type": "json_object"}
    # Unlike Chat Completions, the Responses API does not nest the schema's fields in another object.
    inner = shape["json_schema"]
    return {"type": "json_schema", "name": "answer", **inner}


def _include(extra: Mapping[str, Any], model: str, chat: ChatRequest) -> list[str]:
    if "include" in extra:  # The model has rejected `include`, so do not send it again.
        return []
    # Request encrypted reasoning, because it must be sent back in the conversation's next call.
    included = [] if NON_REASONING_MODELS.search(model.lower()) else [ENCRYPTED]
    included += [item.value for item in chat.vendor if item.path.startswith("include[")]
    return [*included, LOGPROBS] if extra.get("logprobs") else included


def _tools(chat: ChatRequest) -> dict[str, Any]:
    tools = add_tools([_tool(tool) for tool in chat.tools], chat.vendor)
    # Without any tools, a tool choice would be rejected.
    if not tools:
        return {}
    choice: Any = chat.tool_choice
    if chat.tool_name:
        choice = _named(chat.tool_name, chat.tools)
    elif chat.allowed_tools:
        allowed = [_named(name, chat.tools) for name in chat.allowed_tools]
        choice = {"type": "allowed_tools", "mode": choice or "auto", "tools": allowed}
    return {"tools": tools, "tool_choice": choice}


def _named(name: str, tools: tuple[Tool, ...]) -> dict[str, Any]:
    custom = any(tool.name == name and tool.custom is not None for tool in tools)
    return {"type": "custom" if custom else "function", "name": name}


def _tool(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    if tool.custom is not None:
        shaped = {"format": flat_format(tool.custom)} if tool.custom else {}
        return {"type": "custom", "name": tool.name, **described, **shaped}
    # Always send `strict`. Without it, functions would be strict, unlike in Chat Completions.
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "name": tool.name, **described, "parameters": parameters, "strict": bool(tool.strict)}


def flat_format(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of a custom tool's input without the object that wraps a grammar in Chat Completions."""
    grammar = shape.get("grammar")
    return {"type": "grammar", **grammar} if isinstance(grammar, Mapping) else dict(shape)
