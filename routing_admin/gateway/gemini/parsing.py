"""Parse Gemini's generateContent request into the canonical request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.message import ChatRequest, Tool, VendorItem
from capabilities.core.protocols.anthropic.thinking import imply_effort
from capabilities.core.protocols.gemini.replies import PROTOCOL
from capabilities.core.protocols.parameters import CALLING_MODE, GEMINI_FIELDS, THINKING_BUDGET, VALIDATED
from capabilities.core.protocols.vendor_tools import FIELDS, field_tool_name
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import TEMPERATURE
from routing_admin.gateway.chat.parsing import NO_CHOICE, Choice
from routing_admin.gateway.chat_api import SMALL_BYTES, ChatCall, read_answer_count, read_routing_options
from routing_admin.gateway.counts import check_counts
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    A_LIST,
    A_WHOLE_NUMBER,
    Object,
    check_list,
    check_object,
    invalid_choice_error,
    other_fields,
    read_count,
    read_flag,
    read_number,
    read_text,
    require_text,
    wrong_type_error,
)
from routing_admin.gateway.gemini import contents
from routing_admin.gateway.gemini.contents import ContentReader
from routing_admin.gateway.gemini.fields import list_objects, read_fields
from routing_admin.gateway.media import Find

COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
"""Schema fields with 64-bit integers, which protobuf writes as strings in JSON."""
DIGITS = re.compile(r"[0-9]{1,18}")
INSIDE = ("items", "additionalProperties")
LISTS = ("anyOf", "prefixItems")
NAMED = ("properties", "defs")


def convert_schema(schema: Any) -> Any:
    """Convert Gemini's `Schema`, a subset of OpenAPI's, to JSON Schema; return anything but an object unchanged."""
    if not isinstance(schema, dict):
        return schema
    node = dict(read_fields(schema, ""))
    for name in COUNTS:
        if isinstance(node.get(name), str) and DIGITS.fullmatch(node[name]):
            node[name] = int(node[name])
    for name in INSIDE:
        if name in node:
            node[name] = convert_schema(node[name])
    for name in LISTS:
        if isinstance(node.get(name), list):
            node[name] = [convert_schema(item) for item in node[name]]
    for name in NAMED:
        if isinstance(node.get(name), dict):
            node[name] = {key: convert_schema(item) for key, item in node[name].items()}
    return {**_convert_type(node), **_rename(node)}


def _convert_type(node: dict[str, Any]) -> dict[str, Any]:
    kind, nullable = node.pop("type", None), node.pop("nullable", None)
    if not isinstance(kind, str):
        return {} if kind is None else {"type": kind}
    type_name = kind.lower()
    if type_name == "type_unspecified":
        return {}
    if nullable is not True:
        return {"type": type_name}
    if isinstance(node.get("enum"), list):
        node["enum"] = [*node["enum"], None]
    return {"type": [type_name, "null"]}


def _rename(node: dict[str, Any]) -> Mapping[str, Any]:
    # Models write properties in the schema's order, so sort them into the requested order.
    order, properties = node.pop("propertyOrdering", None), node.get("properties")
    if isinstance(order, list) and isinstance(properties, dict):
        first = {name: properties[name] for name in order if isinstance(name, str) and name in properties}
        node["properties"] = {**first, **properties}
    if node.get("format") == "enum":
        del node["format"]
    if "example" in node:
        node["examples"] = [node.pop("example")]
    if "defs" in node:
        node["$defs"] = node.pop("defs")
    if isinstance(ref := node.pop("ref", None), str):
        node["$ref"] = ref.replace("#/defs/", "#/$defs/")
    return node


PARSED_BODY_FIELDS = frozenset(
    {
        *("model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
        *("safetySettings", "serviceTier", "labels", "taskType", "language"),
    }
)
"""Fields that are parsed here; all other fields are dropped and reported as dropped."""
REFUSED = ("cachedContent", "continuationToken")
"""Fields that are refused because they refer to content stored by Google."""
NOT_KEPT = translatable("%(param)s refers to something that is not stored here. Send the item itself.")
CONFIG = "generationConfig"
PARSED_FIELDS = frozenset(
    {
        *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed"),
        *("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "responseMimeType", "responseSchema"),
        *("responseJsonSchema", "_responseJsonSchema", "responseModalities", "thinkingConfig"),
    }
)
"""Fields of `generationConfig` that are parsed here."""
OPENAI_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "seed": "seed",
        "presencePenalty": "presence_penalty",
        "frequencyPenalty": "frequency_penalty",
        "responseLogprobs": "logprobs",
        "logprobs": "top_logprobs",
    }
)
"""Maps fields of `generationConfig` to their names in OpenAI's API."""
PLAIN, JSON = "text/plain", "application/json"
EFFORTS = ("minimal", "low", "medium", "high")
MODES: Mapping[str, str | None] = MappingProxyType(
    {"AUTO": "auto", "ANY": "required", "NONE": "none", VALIDATED: "auto", "MODE_UNSPECIFIED": None}
)
CANDIDATES = f"{CONFIG}.candidateCount"
VENDOR_FIELDS = FIELDS[PROTOCOL]


def parse(body: Object, find: Find) -> ChatCall:
    """Return the call that a JSON object describes; raise `BadRequestError` with the invalid field as `param`."""
    routing = read_routing_options({"task_type": body.get("taskType"), **body})
    check_counts(body, "contents")
    for name in REFUSED:
        if body.get(name):
            raise BadRequestError(Translatable(NOT_KEPT.template, {"param": name}), name, "unsupported_value")
    config = read_fields(body.get(CONFIG) or {}, CONFIG)
    placed = {f"{CONFIG}.{name}": value for name, value in config.items()}
    count = read_answer_count(placed, CANDIDATES)
    chat = _read_chat(body, config, placed, ContentReader(find))
    return ChatCall(
        chat, routing.model, routing.task_type, routing.language, body["stream"], include_usage=True, count=count
    )


def needs_thread(body: Object, size: int) -> bool:
    """Return whether reading the contents may query the database or examine large files.

    `size` is the body's size in bytes.
    """
    return contents.needs_thread(body.get("contents"), small=size <= SMALL_BYTES)


def _read_chat(body: Object, config: Object, placed: Object, reader: ContentReader) -> ChatRequest:
    # The keys of `placed` are full paths in the request, so that error messages name the full path.
    tools, vendor = _read_tools(body, reader.inner)
    choice, mode = _read_choice(body, reader.inner, vendor)
    messages = (*reader.read_system(body.get("systemInstruction")), *reader.read_all(body.get("contents")))
    extra = _read_extra(body, config, placed) | ({CALLING_MODE: mode} if mode == VALIDATED and tools else {})
    left_out = (name for name in config if name not in PARSED_FIELDS and f"{CONFIG}.{name}" not in GEMINI_FIELDS)
    dropped_fields = (
        name for name, value in body.items() if name not in PARSED_BODY_FIELDS and value not in (None, False)
    )
    return ChatRequest(
        messages,
        read_number(placed, f"{CONFIG}.temperature", *TEMPERATURE),
        read_count(placed, f"{CONFIG}.maxOutputTokens"),
        read_number(placed, f"{CONFIG}.topP", 0, 1),
        _read_stops(config.get("stopSequences")),
        tools,
        choice.mode,
        choice.name,
        response_format=_read_format(config, placed),
        extra=extra,
        allowed_tools=choice.allowed,
        inner=(*reader.inner, *(f"{CONFIG}.{name}" for name in left_out), *dropped_fields),
        vendor=tuple(vendor),
    )


def _read_stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else check_list(value, f"{CONFIG}.stopSequences")
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong_type_error(A_LIST, f"{CONFIG}.stopSequences")
    return tuple(stops)


def _read_extra(body: Object, config: Object, placed: Object) -> dict[str, Any]:
    # Options that chat completions also support, and options that only Gemini supports.
    extra = {openai_name: config.get(name) for name, openai_name in OPENAI_NAMES.items()}
    top_k = read_number(placed, f"{CONFIG}.topK", 0, 1_000_000)  # Protobuf clients may write the number as 40.0.
    extra["top_k"] = int(top_k) if top_k else None
    kinds = check_list(config.get("responseModalities") or [], f"{CONFIG}.responseModalities")
    extra["modalities"] = [str(kind).lower() for kind in kinds] or None
    tier = (read_text(body, "serviceTier", "") or "").lower().removeprefix("service_tier_")
    extra["service_tier"] = None if tier in ("", "unspecified", "standard") else tier
    extra |= {name: body.get(name, placed.get(name)) for name in GEMINI_FIELDS}
    extra |= _read_thinking(config)
    return {name: value for name, value in extra.items() if value is not None and value != []}


def _read_thinking(config: Object) -> dict[str, Any]:
    # Convert Gemini's thinking budget or level to an effort; `includeThoughts` requests what other APIs call a summary.
    path = f"{CONFIG}.thinkingConfig"
    thinking = read_fields(config.get("thinkingConfig") or {}, path)
    budget, level = thinking.get("thinkingBudget"), (read_text(thinking, "thinkingLevel", path) or "").lower()
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise wrong_type_error(A_WHOLE_NUMBER, f"{path}.thinkingBudget")
    summary = {"reasoning_summary": "auto"} if read_flag(thinking, "includeThoughts") else {}
    if level and level != "thinking_level_unspecified":
        if level not in EFFORTS:
            raise invalid_choice_error(EFFORTS, f"{path}.thinkingLevel")
        return {**summary, "reasoning_effort": level}
    if budget is None or budget < 0:  # A negative budget lets the model decide how much to think.
        return summary
    effort = (
        {"reasoning_effort": imply_effort(budget), THINKING_BUDGET: budget} if budget else {"reasoning_effort": "none"}
    )
    return {**summary, **effort}


def _read_format(config: Object, placed: Object) -> Mapping[str, Any] | None:
    mime = read_text(placed, f"{CONFIG}.responseMimeType", "") or PLAIN
    if mime not in (PLAIN, JSON):
        raise invalid_choice_error((PLAIN, JSON), f"{CONFIG}.responseMimeType")
    schema = config.get("responseJsonSchema") or config.get("_responseJsonSchema")
    if schema is None and config.get("responseSchema"):
        schema = convert_schema(check_object(config["responseSchema"], f"{CONFIG}.responseSchema"))
    if schema:
        shape = check_object(schema, f"{CONFIG}.responseJsonSchema")
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": shape}}
    return {"type": "json_object"} if mime == JSON else None


def _read_tools(body: Object, inner: list[str]) -> tuple[tuple[Tool, ...], list[VendorItem]]:
    tools, vendor = [], []
    for number, tool in enumerate(list_objects(body.get("tools"), "tools")):
        vendor += [
            VendorItem(PROTOCOL, field_tool_name(name), {name: value}, f"tools[{number}].{name}")
            for name, value in tool.items()
            if name != "functionDeclarations" and value is not None
        ]
        path = f"tools[{number}].functionDeclarations"
        for index, declared in enumerate(list_objects(tool.get("functionDeclarations"), path)):
            tools.append(_read_function(declared, f"{path}[{index}]", inner))
    return tuple(tools), vendor


def _read_function(value: Object, path: str, inner: list[str]) -> Tool:
    inner += other_fields(value, {"name", "description", "parameters", "parametersJsonSchema"}, path)
    schema = value.get("parametersJsonSchema") or convert_schema(value.get("parameters")) or {}
    parameters = check_object(schema, f"{path}.parameters")
    return Tool(require_text(value, "name", path), read_text(value, "description", path) or "", parameters)


def _read_choice(body: Object, inner: list[str], vendor: list[VendorItem]) -> tuple[Choice, str]:
    # If only one function is allowed, force it by name, because every vendor supports this. Pass settings for Google's
    # own tools on in `vendor`.
    tool_config = read_fields(body.get("toolConfig") or {}, "toolConfig")
    vendor_settings = {
        f"toolConfig.{name}": value
        for name, value in tool_config.items()
        if f"toolConfig.{name}" in VENDOR_FIELDS and value
    }
    vendor += [VendorItem(PROTOCOL, VENDOR_FIELDS[path], value, path) for path, value in vendor_settings.items()]
    inner += other_fields(
        tool_config, {"functionCallingConfig", *(path.rpartition(".")[2] for path in VENDOR_FIELDS)}, "toolConfig"
    )
    calling_path = "toolConfig.functionCallingConfig"
    calling = read_fields(tool_config.get("functionCallingConfig") or {}, calling_path)
    inner += other_fields(calling, {"mode", "allowedFunctionNames"}, calling_path)
    mode = (read_text(calling, "mode", calling_path) or "MODE_UNSPECIFIED").upper()
    if mode not in MODES:
        raise invalid_choice_error(tuple(MODES), f"{calling_path}.mode")
    names = check_list(calling.get("allowedFunctionNames") or [], f"{calling_path}.allowedFunctionNames")
    if MODES[mode] is None and not names:
        return NO_CHOICE, mode
    if mode == "ANY" and len(names) == 1:
        return Choice(name=str(names[0])), mode
    return Choice(MODES[mode], None, tuple(map(str, names))), mode
