"""Encode requests for Gemini's generateContent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from capabilities.core.message import (
    ChatRequest,
    Message,
    NativePart,
    Part,
    Role,
    TextPart,
    Tool,
    ToolCall,
    VendorItem,
    interleave,
)
from capabilities.core.protocols.answer_fields import headers_for, merge, split_params
from capabilities.core.protocols.custom_tools import as_function
from capabilities.core.protocols.dialects import GEMINI
from capabilities.core.protocols.gemini import replies
from capabilities.core.protocols.gemini.stream import PartReader
from capabilities.core.protocols.gemini.thinking import thinking_config
from capabilities.core.protocols.media import bare_base64, join_text_parts, list_native_parts, placeholder
from capabilities.core.protocols.parameters import (
    CALLING_MODE,
    GEMINI_FIELDS,
    THINKING_BUDGET,
    VALIDATED,
    dropped_fields,
    end_with_user,
    list_unsent,
)
from capabilities.core.protocols.schema import SCHEMA_IN_PROMPT, find_schema, fit_request, instruction, wants_json
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.thought_fields import SKIP_VALIDATION
from capabilities.core.protocols.tool_calls import call_arguments, parse_arguments
from capabilities.core.protocols.turns import Conversation, leading_system
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import quirk, unwanted_params
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

# Content of a user turn that is inserted at the beginning if the conversation would otherwise begin with a model turn.
OPENING = {"text": "."}
MAX_STOPS = 5
# File types that a function response may contain.
IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
MODALITIES = frozenset({"text", "image", "audio"})
SAFETY = "safetySettings"
CONFIG = "toolConfig."
# If the `computer` tool is used, tool results that are JSON objects are sent as objects, because Gemini reads their
# fields `url` and `safety_acknowledgement`.
COMPUTER, AS_OBJECTS = "computer", "results_as_objects"
KNOWN_EXTRA = {
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "top_k": "topK",
}


@dataclass(frozen=True)
class Gemini:
    """The protocol `gemini`. For `clock`, see the class `OpenAI`."""

    name: str = "gemini"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        quirks = quirks_for(target.endpoint, target.quirks)
        has_field = _native_shape(chat, quirks) and quirk(quirks, "structured", "gemini") == "json_schema"
        chat, moved, fits_schema = fit_request(chat, GEMINI, has_field=has_field)
        quirks = quirks if fits_schema else {**quirks, **SCHEMA_IN_PROMPT}
        if any(item.name == COMPUTER for item in chat.vendor):
            quirks = {**quirks, AS_OBJECTS: True}
        options, dropped = _options(chat, target.model, quirks)
        chat, unended = end_with_user(chat, target)
        system, contents = _conversation(chat, quirks, target.origin(self.name))
        payload = {**system, "contents": contents, **_tools(chat)}
        if options:
            payload["generationConfig"] = options
        if SAFETY in chat.extra:
            payload[SAFETY] = chat.extra[SAFETY]
        headers = headers_for(target, "x-goog-api-key", stream=stream)
        body = merge(payload, target.extra_body)
        dropped += moved + unended
        return UpstreamRequest(_url(target, stream=stream), headers, body, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        return EventStream(PartReader(), lambda body: self.decode(200, {}, body))


def _url(target: Target, *, stream: bool) -> str:
    verb = "streamGenerateContent" if stream else "generateContent"
    parts = urlsplit(target.endpoint.strip())
    path = parts.path.rstrip("/")
    call, _, verb_in_path = path.rpartition(":")
    # If the endpoint is already the URL of a model call, replace only the model and the method in it.
    if verb_in_path in {"generateContent", "streamGenerateContent"}:
        path, has_model, _ = call.rpartition("/models/")
        call_path = f"{path}/models/{_model_part(target)}" if has_model else call  # Tuned models have a different path.
    else:
        call_path = f"{path}/models/{_model_part(target)}"
    query = "&".join(item for item in parts.query.split("&") if item and item != "alt=sse")
    query = "&".join(item for item in (query, "alt=sse" if stream else "") if item)
    return urlunsplit(parts._replace(path=f"{call_path}:{verb}", query=query, fragment=""))


def _model_part(target: Target) -> str:
    return quote(target.model.removeprefix("models/"), safe="-._~/:@")


def _options(chat: ChatRequest, model: str, quirks: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    fields: dict[str, tuple[str, Any]] = {
        "temperature": ("temperature", chat.temperature),
        "top_p": ("topP", chat.top_p),
        "max_tokens": ("maxOutputTokens", chat.max_tokens),
        "stop": ("stopSequences", list(chat.stop[:MAX_STOPS]) or None),
        **{name: (KNOWN_EXTRA[name], value) for name, value in chat.extra.items() if name in KNOWN_EXTRA},
        **_translated(chat, model),
    }
    refused = unwanted_params(quirks, "gemini")
    if not quirk(quirks, "sampling", "gemini"):
        refused |= {"temperature", "top_p", "top_k"}
    set_fields = {name: pair for name, pair in fields.items() if pair[1] is not None}
    by_alias = {name for name, (alias, _) in set_fields.items() if alias in refused}
    remaining, dropped = split_params(set_fields, refused | by_alias)
    remaining.pop(SAFETY, None)  # Safety settings are a field beside generationConfig, not part of it.
    options = {name: value for name, value in remaining.values() if value != {}}
    left_out = _list_left_out(chat, set_fields)
    return {**options, **_shape(chat, quirks)}, (*dropped, *left_out, *dropped_fields(chat, "gemini"))


def _translated(chat: ChatRequest, model: str) -> dict[str, tuple[str, Any]]:
    if not chat.extra:
        return {}
    kinds = chat.extra.get("modalities")
    are_modalities = isinstance(kinds, list) and bool(kinds) and all(kind in MODALITIES for kind in map(str, kinds))
    gemini_fields = {name: (name.rpartition(".")[2], chat.extra.get(name)) for name in GEMINI_FIELDS}
    return {
        **gemini_fields,
        **_thinking(chat, model),
        "modalities": ("responseModalities", [kind.upper() for kind in kinds or ()] if are_modalities else None),
    }


def _thinking(chat: ChatRequest, model: str) -> dict[str, tuple[str, Any]]:
    budget, thinking_support = chat.extra.get(THINKING_BUDGET), thinking_config(model, "low") or {}
    config = thinking_config(model, chat.extra.get("reasoning_effort"))
    # Several parameters determine thinkingConfig. Assign all of them to this field, so that none of them counts as
    # dropped.
    fields = {"reasoning_effort": ("thinkingConfig", config)}
    if isinstance(budget, int) and thinking_support:
        config = {"thinkingBudget": budget}
        fields[THINKING_BUDGET] = ("thinkingConfig", config)
    if chat.extra.get("reasoning_summary") is not None and thinking_support:
        fields["reasoning_summary"] = ("thinkingConfig", {**(config or {}), "includeThoughts": True})
    return fields


def _list_left_out(chat: ChatRequest, fields: Mapping[str, Any]) -> tuple[str, ...]:
    left_out = ["parallel_tool_calls"] if chat.parallel_tool_calls is False and chat.tools else []
    if "stop" in fields and len(chat.stop) > MAX_STOPS:
        left_out.append("stop")
    return (*left_out, *list_unsent(chat, {*fields, CALLING_MODE} if chat.tools and _is_validated(chat) else fields))


def _native_shape(chat: ChatRequest, quirks: Mapping[str, Any]) -> bool:
    if quirk(quirks, "structured", "gemini") == "prompt":
        return False
    # Send tools and a schema together only if an option states that the model accepts this.
    return not chat.tools or quirks.get("structured") == "json_schema"


def _shape(chat: ChatRequest, quirks: Mapping[str, Any]) -> dict[str, Any]:
    if not wants_json(chat.response_format) or not _native_shape(chat, quirks):
        return {}
    schema = find_schema(chat.response_format)
    json_field = {"responseMimeType": "application/json"}
    if not schema or quirk(quirks, "structured", "gemini") == "json_object":
        return json_field
    return {**json_field, "responseJsonSchema": {name: value for name, value in schema.items() if name != "$schema"}}


def _json_instruction(chat: ChatRequest, quirks: Mapping[str, Any]) -> list[str]:
    if not wants_json(chat.response_format):
        return []
    by_field = _native_shape(chat, quirks)
    only_mode = quirk(quirks, "structured", "gemini") == "json_object" and bool(find_schema(chat.response_format))
    return [] if by_field and not only_mode else [instruction(chat.response_format)]


def _tools(chat: ChatRequest) -> dict[str, Any]:
    tools = [as_function(tool) for tool in chat.tools]
    declared = [{"functionDeclarations": [_declare(tool) for tool in tools]}] if tools else []
    all_tools = [*declared, *(item.value for item in chat.vendor if item.path.startswith("tools["))]
    config = {item.path.removeprefix(CONFIG): item.value for item in chat.vendor if item.path.startswith(CONFIG)}
    if calling := _calling(chat, tools):
        config["functionCallingConfig"] = calling
    return {**({"tools": all_tools} if all_tools else {}), **({"toolConfig": config} if config else {})}


def _calling(chat: ChatRequest, tools: list[Tool]) -> dict[str, Any]:
    if not tools:
        return {}
    free = VALIDATED if _is_validated(chat) else "AUTO" if chat.tool_choice else None
    mode = {"none": "NONE", "required": "ANY"}.get(chat.tool_choice or "", free)
    calling: dict[str, Any] = {"mode": mode} if mode else {}
    wanted_names = (chat.tool_name,) if chat.tool_name else chat.allowed_tools
    allowed_names = [tool.name for tool in tools if tool.name in wanted_names]
    if allowed_names:  # A list of names requires the mode ANY, or VALIDATED if the model may also answer with text.
        mode = "ANY" if chat.tool_name or chat.tool_choice == "required" else VALIDATED
        calling = {"mode": mode, "allowedFunctionNames": allowed_names}
    return calling


def _is_validated(chat: ChatRequest) -> bool:
    return chat.extra.get(CALLING_MODE) == VALIDATED


def _declare(tool: Tool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters:
        out["parametersJsonSchema"] = {name: value for name, value in tool.parameters.items() if name != "$schema"}
    return out


def _conversation(
    chat: ChatRequest, quirks: Mapping[str, Any], origin: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    texts, rest = leading_system(chat.messages)
    texts = [*texts, *_json_instruction(chat, quirks)]
    conversation = Conversation("user", "model")
    names: dict[str, str] = {}
    for message in rest:
        names |= {call.id: call.name for call in message.tool_calls}
        if message.role is Role.ASSISTANT:
            conversation.model(_model(message, origin))
            # Files in an assistant message are moved to the next user turn.
            conversation.postpone([_native(part) for part in list_native_parts(message)])
        else:
            _add(message, conversation, names, quirks, origin)
    contents = [{"role": turn.speaker, "parts": turn.content} for turn in conversation.turns(OPENING)]
    return ({"systemInstruction": {"parts": [{"text": text} for text in texts]}} if texts else {}), contents


def _add(
    message: Message, conversation: Conversation, names: Mapping[str, str], quirks: Mapping[str, Any], origin: str
) -> None:
    if message.role is Role.TOOL:
        _result(message, conversation, names, quirks)
    elif message.role is Role.SYSTEM:
        conversation.postpone(_parts(message.parts))
    else:
        conversation.user([*_parts(message.parts), *(_own(item, origin) for item in message.vendor)])


def _model(message: Message, origin: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    text, offset, sent_calls = join_text_parts(message.parts), 0, 0
    calls = _calls(message.tool_calls, origin)
    for item in interleave(message.thoughts, message.vendor):
        if isinstance(item, VendorItem):
            parts += [*_text(text[offset : item.offset]), *calls[sent_calls : item.calls], _own(item, origin)]
            sent_calls = max(sent_calls, item.calls)
        elif item.origin == origin:
            parts.append({"text": text[offset : item.offset], "thoughtSignature": item.proof})
        else:
            continue
        offset = max(offset, item.offset)
    return [*parts, *_text(text[offset:]), *calls[sent_calls:]]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text else []


def _own(item: VendorItem, origin: str) -> dict[str, Any]:
    # A signature is sent only to the model that wrote it, or to any model if its origin is unknown.
    signed = item.origin in ("", origin)
    return {name: value for name, value in item.value.items() if signed or name != "thoughtSignature"}


def _calls(calls: Sequence[ToolCall], origin: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    signed = any(call.signature_for(origin) for call in calls)
    for index, call in enumerate(calls):
        part: dict[str, Any] = {"functionCall": {"id": call.id, "name": call.name, "args": call_arguments(call)}}
        # If none of the calls has a signature from this model, give Google's placeholder to the first one.
        signature = call.signature_for(origin) or ("" if signed or index else SKIP_VALIDATION)
        parts.append({**part, "thoughtSignature": signature} if signature else part)
    return parts


def _result(message: Message, conversation: Conversation, names: Mapping[str, str], quirks: Mapping[str, Any]) -> None:
    media = list_native_parts(message)
    tool_media = quirk(quirks, "tool_media", "gemini")
    inline_parts = [
        part for part in media if tool_media == "native" and part.blob is not None and part.mime_type in IN_RESULTS
    ]
    text = join_text_parts(message.parts)
    if tool_media == "text":
        text, media = "\n".join([text, *(placeholder(part) for part in media)]).strip(), []
    name = names.get(message.tool_call_id or "") or message.name or "tool"
    is_object = quirks.get(AS_OBJECTS) and text[:1] == "{" and not message.is_error
    result_object = parse_arguments(text) if is_object else {}
    response: dict[str, Any] = {
        "name": name,
        "response": result_object or {"error" if message.is_error else "result": text},
    }
    if message.tool_call_id:
        response["id"] = message.tool_call_id
    if inline_parts:
        response["parts"] = [_inline(part) for part in inline_parts]
    conversation.result({"functionResponse": response})
    # Files that a function response cannot contain follow in the same turn.
    conversation.postpone([_native(part) for part in media if part not in inline_parts])


def _inline(part: NativePart) -> dict[str, Any]:
    data = {"mimeType": part.mime_type, "data": bare_base64(part)}
    return {"inlineData": {**data, "displayName": part.filename} if part.filename else data}


def _parts(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [
        {"text": part.text} if isinstance(part, TextPart) else _native(part)
        for part in parts
        if isinstance(part, NativePart) or (isinstance(part, TextPart) and part.text)
    ]


def _native(part: NativePart) -> dict[str, Any]:
    if part.blob is None:
        # The file type of a URL without an extension is unknown, and Gemini does not accept `image/*`.
        type_field = {} if part.mime_type.endswith("/*") else {"mimeType": part.mime_type}
        return {"fileData": {**type_field, "fileUri": part.url or ""}}
    return {"inlineData": {"mimeType": part.mime_type, "data": bare_base64(part)}}
