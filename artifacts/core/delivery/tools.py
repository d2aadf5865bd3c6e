"""Definitions of the tools for agents in OpenAI's function format, for the `tools` field of a chat request."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.texts.description import nearest_language
from capabilities.core.vocabulary import STANDARD_CAPABILITIES, Kind

MAX_LIST_ITEMS = 200
"""Maximum number of artifacts on one page of a listing."""

TEXTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "get_artifact": "Read an artifact (a stored file). What your model can read comes as it is; the rest is "
            "described, with its name, type and size.",
            "ref": "The artifact's reference, artifact:<id>.",
            "offset": "For long text: the first character to read, from 0.",
            "limit": "For long text: how many characters to read.",
            "find_capable_agents": "List the ids of the agents whose model has a capability, to hand content on to.",
            "capability": "The capability, e.g. vision for images, audio, video, file for documents.",
            "direction": "Whether the model reads (input), writes (output) or does both; input if left out.",
            "store_artifact": "Store a text as an artifact and get its reference, to hand it to other agents. For any "
            "other file leave text out: you get an uploadUrl, to which one HTTP PUT within 15 minutes sends the file "
            "(curl -T FILE URL), and the reference that the file will have.",
            "text": "The text to store; left out for any other file.",
            "filename": "A name for it, e.g. notes.md.",
            "mimeType": "Its type, e.g. image/png; found out if left out.",
            "size": "Of a file to upload: how many bytes it has, where that is known.",
            "list_artifacts": "List the artifacts that you stored yourself, newest first, to find a reference again.",
            "q": "Words in the name, type or id; all if left out.",
            "kind": "One kind only: text, image, audio, video, document or other.",
            "list_artifacts.limit": "How many at the most; 20 if left out.",
            "more": "There are more. Call list_artifacts again with cursor set to nextCursor.",
            "cursor": "nextCursor of the page before, for the next one.",
            "get_my_capabilities": "Tell what your own model can read and write, and which agents can take the rest.",
        },
        "zh": {
            "get_artifact": "读取一个工件（已保存的文件）。"
            "当前模型能读取的内容按原样返回，其余内容返回包含名称、类型和大小的说明。",
            "ref": "工件引用，格式为 artifact:<id>。",
            "offset": "用于长文本：从第几个字符开始读取，从 0 起算。",
            "limit": "用于长文本：读取多少个字符。",
            "find_capable_agents": "列出其模型具备某项能力的智能体 ID，以便把内容转发给它们。",
            "capability": "能力名称，例如图片用 vision，音频用 audio，视频用 video，文档用 file。",
            "direction": "模型用于输入 (input)、输出 (output) 还是两者 (both)；省略时为 input。",
            "store_artifact": "把一段文本保存为工件并返回其引用，以便交给其他智能体。"
            "其他文件请省略 text：返回 uploadUrl，请在 15 分钟内用一次 HTTP PUT 把文件发送到该地址"
            "（curl -T 文件 地址）；同时返回该文件将拥有的引用。",
            "text": "要保存的文本；其他文件省略。",
            "filename": "文件名，例如 notes.md。",
            "mimeType": "文件类型，例如 image/png；省略时自动识别。",
            "size": "要上传的文件的字节数，已知时填写。",
            "list_artifacts": "列出自己保存的工件，最新的在前，用于找回引用。",
            "q": "名称、类型或 ID 中包含的文字；省略时列出全部。",
            "kind": "只列出一种：text、image、audio、video、document 或 other。",
            "list_artifacts.limit": "最多列出多少个；省略时为 20。",
            "more": "还有更多。请把 cursor 设为 nextCursor，再次调用 list_artifacts。",
            "cursor": "上一页返回的 nextCursor，用于取下一页。",
            "get_my_capabilities": "说明当前模型能读取和输出哪些内容，以及哪些智能体可以处理其余内容。",
        },
    }
)
"""Descriptions of the tools and their parameters, by language."""

_TEXT: Mapping[str, Any] = {"type": "string"}
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}

PARAMETERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "get_artifact": {"ref": _TEXT, "offset": _COUNT, "limit": {"type": "integer", "minimum": 1}},
        "find_capable_agents": {
            "capability": {"type": "string", "examples": list(STANDARD_CAPABILITIES)},
            "direction": {"type": "string", "enum": ["input", "output", "both"]},
        },
        "store_artifact": {"text": _TEXT, "filename": _TEXT, "mimeType": _TEXT, "size": _COUNT},
        "get_my_capabilities": {},
        "list_artifacts": {
            "q": _TEXT,
            "kind": {"type": "string", "enum": list(Kind)},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIST_ITEMS},
            "cursor": _TEXT,
        },
    }
)

REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"get_artifact": ("ref",), "find_capable_agents": ("capability",), "store_artifact": ("filename",)}
)


def tool_definitions(language: str | None = None) -> list[dict[str, Any]]:
    """Return the tools in OpenAI's function format. The descriptions are in the supported language that fits best."""
    texts = TEXTS[nearest_language(language)]
    return [{"type": "function", "function": _function(name, texts)} for name in PARAMETERS]


def _function(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    properties = {
        key: {**schema, "description": texts.get(f"{name}.{key}") or texts[key]}
        for key, schema in PARAMETERS[name].items()
    }
    required = list(REQUIRED.get(name, ()))
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": texts[name], "parameters": schema}
