"""Read requests according to each vendor's documentation, independently of the product's encoders."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote


@dataclass
class Media:
    """A file in a request: the field that contains it, its type, and its bytes or URL."""

    slot: str
    mime_type: str = ""
    data: bytes = b""
    url: str = ""


@dataclass
class ReceivedRequest:
    """A request as its vendor reads it.

    `turns` are pairs of role and text; tool results have the role `tool`. `names` are the names of the request's
    fields, including those within Gemini's options. `parameters` maps each tool to its schema. `json` is true if the
    request asks for JSON, and `results_last` is true if the last message is a tool result. `operation` is empty for
    chat requests.
    """

    protocol: str = "openai"
    model: str = ""
    stream: bool = False
    turns: list[tuple[str, str]] = field(default_factory=list)
    media: list[Media] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    tool_choice: str | None = None
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    results_last: bool = False
    schema: dict[str, Any] | None = None
    json: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    names: frozenset[str] = frozenset()
    problem: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    operation: str = ""

    @property
    def question(self) -> str:
        """Return the last text that the user wrote."""
        return next((text for role, text in reversed(self.turns) if role == "user" and text), "")


COUNTS = {"/count_tokens": "", "/input_tokens": "", ":countTokens": ":generateContent"}
"""Maps each token-counting endpoint's path suffix to the suffix of the endpoint whose requests it counts."""


def counted_call(path: str) -> str:
    """Return the path of the call whose tokens are to be counted, or an empty string if the path counts no tokens."""
    plain = path.split("?")[0]
    return next((plain.removesuffix(end) + call for end, call in COUNTS.items() if plain.endswith(end)), "")


def protocol_at(path: str) -> str:
    path = counted_call(path) or path
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return "gemini"
    call = path.split("?")[0].rpartition("/")[2]
    return {"messages": "anthropic", "responses": "openai-responses"}.get(call, "openai")


def read(path: str, body: bytes) -> ReceivedRequest:
    """Parse a request that was sent to the path. If it cannot be read, its `problem` is set to the reason."""
    path = counted_call(path) or path
    protocol = protocol_at(path)
    try:
        data = json.loads(body)
        data = data.get("generateContentRequest", data)
    except (ValueError, AttributeError):
        data = None
    request = ReceivedRequest(protocol)
    if not isinstance(data, dict):
        request.problem = "the body is not a JSON object"
    else:
        request.names, request.data = frozenset(data), data
        try:
            READERS[protocol](data, request)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
            request.problem = f"the request is not of this protocol's shape: {error!r}"
    if protocol == "gemini":
        request.model = unquote(path.split("?")[0].split("/models/")[-1]).rsplit(":", 1)[0]
        request.stream = ":streamGenerateContent" in path
    return request


def _data_url(url: str, slot: str) -> Media:
    if not url.startswith("data:"):
        return Media(slot, url=url)
    head, _, data = url.partition(";base64,")
    return Media(slot, head.removeprefix("data:"), base64.b64decode(data, validate=True))


def _openai(data: dict[str, Any], request: ReceivedRequest) -> None:
    request.model, request.stream = str(data.get("model", "")), bool(data.get("stream"))
    request.max_tokens = data.get("max_completion_tokens", data.get("max_tokens"))
    request.temperature = data.get("temperature")
    for tool in data.get("tools") or []:
        offered = tool[tool["type"]]
        request.parameters[offered["name"]] = offered.get("parameters") or {}
    request.tools = list(request.parameters)
    choice = data.get("tool_choice")
    request.tool_choice = choice["function"]["name"] if isinstance(choice, dict) else choice
    shape = data.get("response_format") or {}
    request.schema, request.json = (shape.get("json_schema") or {}).get("schema"), shape.get("type") == "json_object"
    for message in data.get("messages") or []:
        text = _openai_content(message.get("content"), request)
        request.turns.append((message["role"], text))
        for call in message.get("tool_calls") or []:
            request.calls.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        if message["role"] == "tool":
            request.results.append((message["tool_call_id"], text))
        request.results_last = message["role"] == "tool"


def _openai_content(content: Any, request: ReceivedRequest) -> str:
    if not isinstance(content, list):
        return content or ""
    for part in content:
        kind = part["type"]
        value = part.get(kind)
        if kind in {"image_url", "video_url", "audio_url"}:
            request.media.append(_data_url(value if isinstance(value, str) else value["url"], kind))
        elif kind == "input_audio":
            bare = value if isinstance(value, str) else value["data"]
            mime = "" if isinstance(value, str) else f"audio/{value['format']}"
            request.media.append(Media(kind, mime, base64.b64decode(bare, validate=True)))
        elif kind == "file":
            request.media.append(_data_url(value["file_data"], kind))
        elif kind == "document_url":
            request.media.append(_data_url(value, kind))
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _responses(data: dict[str, Any], request: ReceivedRequest) -> None:
    request.model, request.stream = str(data["model"]), bool(data.get("stream"))
    request.max_tokens, request.temperature = data.get("max_output_tokens"), data.get("temperature")
    request.parameters = {
        tool.get("name", tool["type"]): tool.get("parameters") or {} for tool in data.get("tools") or []
    }
    request.tools = list(request.parameters)
    choice = data.get("tool_choice")
    request.tool_choice = choice["name"] if isinstance(choice, dict) else choice
    shape = (data.get("text") or {}).get("format") or {}
    request.schema, request.json = shape.get("schema"), shape.get("type") == "json_object"
    if data.get("instructions"):
        request.turns.append(("system", data["instructions"]))
    for item in data["input"]:
        kind = item["type"]
        request.results_last = kind.endswith("_output")
        if kind == "message":
            request.turns.append((item["role"], _response_content(item["content"], request)))
        elif request.results_last:
            request.results.append((item["call_id"], _response_content(item["output"], request)))
            request.turns.append(("tool", request.results[-1][1]))
        elif kind == "function_call":
            request.calls.append((item["name"], json.loads(item["arguments"])))
        elif kind == "custom_tool_call":
            request.calls.append((item["name"], {"input": item["input"]}))
        elif kind == "reasoning":
            assert item["encrypted_content"], "thoughts that only their maker can read"
            assert isinstance(item["summary"], list), "a list, though it may be empty"
        else:
            raise ValueError(f"an item of type {kind}")


def _response_content(content: Any, request: ReceivedRequest) -> str:
    if isinstance(content, str):
        return content
    for part in content:
        if part["type"] == "input_image":
            request.media.append(_data_url(part["image_url"], "input_image"))
        elif part["type"] == "input_file":
            request.media.append(_data_url(part.get("file_data") or part["file_url"], "input_file"))
        elif part["type"] != "input_text":
            raise ValueError(f"a part of type {part['type']}")
    return "\n".join(part["text"] for part in content if part["type"] == "input_text")


def _anthropic(data: dict[str, Any], request: ReceivedRequest) -> None:
    request.model, request.stream = str(data.get("model", "")), bool(data.get("stream"))
    request.max_tokens, request.temperature = data.get("max_tokens"), data.get("temperature")
    request.parameters = {tool["name"]: tool.get("input_schema") or {} for tool in data.get("tools") or []}
    request.tools = list(request.parameters)
    choice = data.get("tool_choice") or {}
    request.tool_choice = choice.get("name") or choice.get("type")
    request.schema = ((data.get("output_config") or {}).get("format") or {}).get("schema")
    system = data.get("system")
    if system:
        request.turns.append(("system", system if isinstance(system, str) else _blocks(system, request)))
    for message in data.get("messages") or []:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        request.results_last = any(block["type"] == "tool_result" for block in blocks)
        request.turns.append((message["role"], _blocks(blocks, request)))


def _blocks(blocks: list[dict[str, Any]], request: ReceivedRequest) -> str:
    for block in blocks:
        if block["type"] in {"image", "document"}:
            source = block["source"]
            data = base64.b64decode(source["data"], validate=True) if source["type"] == "base64" else b""
            request.media.append(Media(block["type"], source.get("media_type", ""), data, source.get("url", "")))
        elif block["type"] == "tool_use":
            request.calls.append((block["name"], block["input"]))
        elif block["type"] == "tool_result":
            inner = block.get("content") or ""
            text = inner if isinstance(inner, str) else _blocks(inner, request)
            request.results.append((block["tool_use_id"], text))
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _gemini(data: dict[str, Any], request: ReceivedRequest) -> None:
    options = data.get("generationConfig") or {}
    request.names |= frozenset(options)
    request.max_tokens, request.temperature = options.get("maxOutputTokens"), options.get("temperature")
    request.schema = options.get("responseJsonSchema") or options.get("responseSchema")
    request.json = options.get("responseMimeType") == "application/json"
    for tool in data.get("tools") or []:
        for declared in tool.get("functionDeclarations") or []:
            request.parameters[declared["name"]] = declared.get("parametersJsonSchema") or {}
    request.tools = list(request.parameters)
    calling = (data.get("toolConfig") or {}).get("functionCallingConfig") or {}
    request.tool_choice = (calling.get("allowedFunctionNames") or [None])[0] or calling.get("mode")
    system = data.get("systemInstruction")
    if system:
        request.turns.append(("system", _gemini_parts(system["parts"], request)))
    for content in data.get("contents") or []:
        role = "assistant" if content.get("role") == "model" else "user"
        request.results_last = any("functionResponse" in part for part in content["parts"])
        request.turns.append((role, _gemini_parts(content["parts"], request)))


def _gemini_parts(parts: list[dict[str, Any]], request: ReceivedRequest) -> str:
    for part in parts:
        if inline := part.get("inlineData"):
            data = base64.urlsafe_b64decode(inline["data"].replace("+", "-").replace("/", "_"))
            request.media.append(Media("inlineData", _mime(inline), data))
        elif linked := part.get("fileData"):
            request.media.append(Media("fileData", _mime(linked), url=linked["fileUri"]))
        elif call := part.get("functionCall"):
            request.calls.append((call["name"], call.get("args") or {}))
        elif answer := part.get("functionResponse"):
            request.results.append((answer["name"], json.dumps(answer["response"], ensure_ascii=False)))
            _gemini_parts(answer.get("parts") or [], request)
    return "\n".join(part["text"] for part in parts if "text" in part)


def _mime(value: dict[str, Any]) -> str:
    """Return the MIME type. Its key may be in camel case or in snake case, as in any JSON for protocol buffers."""
    return str(value["mimeType"] if "mimeType" in value else value["mime_type"])


READERS: Mapping[str, Callable[[dict[str, Any], ReceivedRequest], None]] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
"""Maps each protocol to the function that reads its request body."""
