"""Media limits of each protocol and provider: accepted types, bytes, counts, pixels and pages.

Vendors change these numbers, so each table states its source and when it was checked. An administrator can override the
limits of a service in the same format (see `slot_choice.slots_for`). `maxBytes` is the maximum file size before base64
encoding. A slot that is `None` means that the provider does not accept this kind of content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.protocols.parameters import CLAUDE_FROM_4_6
from capabilities.core.translatable import translatable

Limits = Mapping[str, Any]

MIB = 1024 * 1024
CHECKED = "2026-11-20"
RECHECKED = "2026-11-24"

PHOTOS = ["image/jpeg", "image/png", "image/webp", "image/gif"]
SPEECH = ["audio/wav", "audio/mpeg"]
MORE_AUDIO = [*SPEECH, "audio/flac", "audio/ogg", "audio/aac", "audio/aiff", "audio/mp4"]
CLIPS = ["video/mp4", "video/webm", "video/quicktime"]
PDF = ["application/pdf"]
_OFFICE = "application/vnd.openxmlformats-officedocument"
PAGED_TYPES = [
    *PDF,
    *("application/msword", f"{_OFFICE}.wordprocessingml.document", "application/vnd.oasis.opendocument.text"),
    *("application/rtf", "application/vnd.ms-powerpoint", f"{_OFFICE}.presentationml.presentation"),
]


def _add_source(source: str, *, checked: str = CHECKED, **slots: Any) -> Limits:
    # The administrators' pages show the source and the date next to each limit.
    origin = {"source": source, "checkedOn": checked}
    return MappingProxyType(
        {key: {**origin, **value} if isinstance(value, dict) else value for key, value in slots.items()}
    )


OPENAI_IMAGES: Limits = MappingProxyType(
    {
        "capabilities": ["vision"],
        "mimeTypes": PHOTOS,
        # OpenAI documents a maximum of 1,500 images per request. The 50 MB total was measured (see `PROTOCOLS`).
        "maxCount": 1500,
        "maxTotalBytes": 50 * MIB,
        "maxSide": 5500,
        "takesUrl": True,
    }
)
"""OpenAI's image limits, identical for Chat Completions and Responses."""

PROTOCOLS: Mapping[str, Limits] = MappingProxyType(
    {
        "openai": _add_source(
            translatable(
                "OpenAI: images and vision (over 30,000 patches of 32 pixels are refused: 5,500 a side), file inputs; "
                "the Chat Completions file part takes PDF only"
            ),
            checked=RECHECKED,
            toolMedia="hoist",
            maxRequestBytes=512 * MIB,
            image={"name": "image_url", **OPENAI_IMAGES},
            audio={"name": "input_audio", "capabilities": ["audio"], "mimeTypes": SPEECH},
            file={"name": "file", "capabilities": ["file"], "mimeTypes": PDF, "maxTotalBytes": 50 * MIB},
        ),
        "openai-responses": _add_source(
            translatable(
                "OpenAI: images and vision, file inputs (it reads 1,000 rows of a spreadsheet, so tables are "
                "extracted here)"
            ),
            checked=RECHECKED,
            toolMedia="native",
            maxRequestBytes=512 * MIB,
            image={"name": "input_image", **OPENAI_IMAGES, "inToolResult": True},
            file={
                "name": "input_file",
                "capabilities": ["file"],
                "mimeTypes": PAGED_TYPES,
                "maxTotalBytes": 50 * MIB,
                "takesUrl": True,
                "inToolResult": True,
            },
        ),
        "anthropic": _add_source(
            translatable(
                "Anthropic: vision, PDF support (10 MB of base64 an image; 8000 px, 2000 px above 20 images; 100 "
                "images and PDF pages with a window of 200,000 tokens, else 600)"
            ),
            checked=RECHECKED,
            toolMedia="native",
            maxRequestBytes=32 * MIB,
            image={
                "name": "image",
                "capabilities": ["vision"],
                "mimeTypes": PHOTOS,
                "maxBytes": 10 * MIB * 3 // 4,
                "maxCount": 100,
                "maxSide": 8000,
                "crowdCount": 20,
                "crowdMaxSide": 2000,
                "takesUrl": True,
                "inToolResult": True,
            },
            file={
                "name": "document",
                "capabilities": ["file"],
                "mimeTypes": PDF,
                "maxPages": 100,
                "takesUrl": True,
                "inToolResult": True,
            },
        ),
        "gemini": _add_source(
            translatable(
                "Google: Gemini API, inline data (100 MB a request, 50 MB a PDF, 1000 pages, 3600 images; it scales "
                "images to 3,072 pixels, so four times that is enough)"
            ),
            checked=RECHECKED,
            toolMedia="native",
            maxRequestBytes=100 * MIB,
            image={
                "name": "inlineData",
                "capabilities": ["vision"],
                "mimeTypes": ["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"],
                "maxCount": 3600,
                "maxSide": 12288,
                "takesUrl": True,
                "inToolResult": True,
                "toolMimeTypes": ["image/png", "image/jpeg", "image/webp"],
            },
            audio={"name": "inlineData", "capabilities": ["audio"], "mimeTypes": MORE_AUDIO, "takesUrl": True},
            video={
                "name": "inlineData",
                "capabilities": ["video"],
                "mimeTypes": [*CLIPS, "video/mpeg", "video/x-msvideo", "video/x-flv", "video/x-ms-wmv", "video/3gpp"],
                "takesUrl": True,
            },
            file={
                "name": "inlineData",
                "capabilities": ["file"],
                "mimeTypes": PDF,
                "maxBytes": 50 * MIB,
                "maxPages": 1000,
                "takesUrl": True,
                "inToolResult": True,
            },
        ),
        "echo": _add_source(
            translatable("embedded: answers with what it received"),
            toolMedia="native",
            image={"name": "image", "capabilities": ["vision"], "takesUrl": True, "inToolResult": True},
            audio={"name": "audio", "capabilities": ["audio"], "takesUrl": True, "inToolResult": True},
            video={"name": "video", "capabilities": ["video"], "takesUrl": True, "inToolResult": True},
            file={"name": "file", "capabilities": ["file"], "takesUrl": True, "inToolResult": True},
        ),
    }
)
"""The slots of each protocol. Providers that differ from their protocol are in `TEMPLATES`.

Sources: developers.openai.com/api/docs/guides/images-vision and file-inputs (512 MB and 1,500 images per request,
30,000 patches; the rejection of more than 50 MB of images was measured),
platform.claude.com/docs/en/build-with-claude/vision and pdf-support, ai.google.dev/gemini-api/docs/file-input-methods
(100 MB of inline data since January 2026, 20 MB before).
"""

MODELS: Mapping[str, tuple[tuple[re.Pattern[str], Limits], ...]] = MappingProxyType(
    {"anthropic": ((re.compile(CLAUDE_FROM_4_6), {"image": {"maxCount": 600}, "file": {"maxPages": 600}}),)}
)
"""Higher limits for models that accept more than their protocol's default. Claude 4.6 and later have a context window
of a million tokens."""

CLAUDE_ON_A_CLOUD: Limits = _add_source(
    translatable("Anthropic: vision, on Bedrock and Vertex (5 MB of base64 an image, no addresses; AWS: 100 pages)"),
    checked=RECHECKED,
    image={"maxBytes": 5 * MIB * 3 // 4, "takesUrl": False},
    file={"maxPages": 100, "takesUrl": False},
)

VIDEO_URL: Limits = _add_source(
    translatable("the video_url part that several compatible servers accept"),
    video={"name": "video_url", "capabilities": ["video"], "mimeTypes": CLIPS, "takesUrl": True},
)
"""The default video slot of OpenAI-compatible providers if their compatibility options allow videos."""

_MEASURED = translatable("measured request limits of hosted models, 2026-09-19")

TEMPLATES: Mapping[str, Limits] = MappingProxyType(
    {
        "openai": _add_source(translatable("OpenAI: images and vision")),
        "mistral": _add_source(
            translatable("Mistral: vision, audio and document chunks, in tool results, too"),
            toolMedia="native",
            image={"inToolResult": True},
            audio={"mimeTypes": ["audio/wav", "audio/mpeg", "audio/flac", "audio/ogg"], "inToolResult": True},
            file={"name": "document_url", "takesUrl": True, "inToolResult": True},
        ),
        "openrouter": _add_source(
            translatable("OpenRouter: multimodal inputs"),
            audio={"mimeTypes": MORE_AUDIO},
            video={"name": "video_url", "capabilities": ["video"], "mimeTypes": CLIPS, "takesUrl": True},
            file={"takesUrl": True},
        ),
        "vllm": _add_source(
            translatable("vLLM: multimodal inputs of the chat endpoint"),
            video={"name": "video_url", "capabilities": ["video"], "mimeTypes": CLIPS, "takesUrl": True},
            file=None,
        ),
        "ollama": _add_source(
            translatable("Ollama: OpenAI compatibility (data URLs only, no GIF)"),
            image={"mimeTypes": ["image/jpeg", "image/png", "image/webp"], "takesUrl": False},
            file=None,
        ),
        "llamacpp": _add_source(
            translatable("llama.cpp server: multimodal"),
            image={"mimeTypes": ["image/jpeg", "image/png", "image/gif"]},
            file=None,
        ),
        "dashscope": _add_source(
            _MEASURED,
            image={"maxBytes": 20 * MIB * 3 // 4, "maxCount": 250},
            video={
                "name": "video_url",
                "capabilities": ["video"],
                "mimeTypes": CLIPS,
                "maxBytes": 20 * MIB * 3 // 4,
                "takesUrl": True,
            },
            file=None,
        ),
        "deepseek": _add_source(
            _MEASURED, maxRequestBytes=48 * MIB, image={"maxBytes": 24 * MIB, "maxCount": 600}, audio=None, file=None
        ),
        "groq": _add_source(translatable("Groq: vision"), audio=None, file=None),
        "mimo": _add_source(
            translatable("Xiaomi MiMo: multimodal inputs"),
            audio={"mimeTypes": ["audio/mpeg", "audio/flac", "audio/mp4", "audio/wav", "audio/ogg"]},
            video={
                "name": "video_url",
                "capabilities": ["video"],
                "mimeTypes": ["video/mp4", "video/x-ms-wmv", "video/quicktime", "video/x-msvideo"],
                "takesUrl": True,
            },
            file=None,
        ),
        "zhipu": _add_source(translatable("Zhipu: chat completions"), **dict(VIDEO_URL), file=None),
        "ark": _add_source(translatable("Volcengine Ark: chat completions"), **dict(VIDEO_URL), file=None),
        "moonshot": _add_source(translatable("Moonshot: chat completions"), file=None),
        "qianfan": _add_source(translatable("Baidu Qianfan: chat completions"), file=None),
        "hunyuan": _add_source(translatable("Tencent Hunyuan: chat completions"), file=None),
        "siliconflow": _add_source(translatable("SiliconFlow: chat completions"), file=None),
        "lmstudio": _add_source(translatable("LM Studio: OpenAI compatibility"), image={"takesUrl": False}, file=None),
        "minimax": _add_source(_MEASURED, maxRequestBytes=128 * MIB, image={"maxBytes": 10 * MIB * 3 // 4}, file=None),
        "fireworks": _add_source(_MEASURED, image={"maxCount": 60}),
        "deepinfra": _add_source(_MEASURED, image={"maxCount": 8}),
        "nvidia": _add_source(_MEASURED, maxRequestBytes=25 * MIB),
        "ollama-cloud": _add_source(_MEASURED, maxRequestBytes=16 * MIB, image={"takesUrl": False}, file=None),
        "nebius": _add_source(_MEASURED, image={"maxBytes": 10 * MIB * 3 // 4}),
        "bedrock": {**CLAUDE_ON_A_CLOUD, "maxRequestBytes": 20_000_000},
        "vertex": CLAUDE_ON_A_CLOUD,
    }
)
"""Slots of providers that differ from their protocol. The keys are presets and host names."""

_SEEDS = translatable("the table of the original specification")

MESSAGES: Limits = _add_source(
    _SEEDS,
    text={"name": "file", "capabilities": ["file"], "minBytes": 0},
    image={"name": "image_url", "capabilities": ["vision"], "minBytes": 0},
    audio={"name": "audio", "capabilities": ["audio"], "minBytes": 0},
    video={"name": "video", "capabilities": ["video"], "minBytes": 0},
    file={"name": "file", "capabilities": ["file"], "minBytes": 0},
)
"""Slots for messages between agents. They depend only on capabilities, not on sizes or counts (MCR-2.1 to 2.6)."""

GET_ARTIFACT: Limits = _add_source(
    _SEEDS,
    image={"name": "image_url", "capabilities": ["vision"], "minBytes": 0},
    audio={"name": "file", "capabilities": ["file", "audio"], "minBytes": 0},
    video={"name": "file", "capabilities": ["file", "video"], "minBytes": 0},
    file={"name": "file", "capabilities": ["file"], "minBytes": 0},
)
"""The slots for get_artifact results. A service with the capability `file` also receives audio and video (ABR-4.1).
Text needs no slot (ABR-5.1)."""
