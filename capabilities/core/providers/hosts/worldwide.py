"""Provider hosts that can be reached from any country."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.providers.hosts.row import HostPreset, row

GEMINI_HOST = "generativelanguage.googleapis.com"
GEMINI_THROUGH_OPENAI: Mapping[str, Any] = MappingProxyType({"call_signatures": True})
"""Compatibility options of Google's OpenAI-compatible API (see "thought signatures" in the Gemini API
documentation)."""

WORLDWIDE: tuple[HostPreset, ...] = (
    row(
        "openai",
        "OpenAI",
        "OpenAI",
        "https://api.openai.com/v1",
        quirks={
            "max_tokens_field": "max_completion_tokens",
            "cache_marks": "prompt_cache_breakpoint",
            "request_id_header": "X-Client-Request-Id",
        },
        models=("gpt-5.6-sol", "gpt-6-luna"),
        key_url="https://platform.openai.com/api-keys",
        source="OpenAI API reference: chat completions",
    ),
    row(
        "openai-responses",
        "OpenAI (Responses)",
        "OpenAI（Responses）",
        "https://api.openai.com/v1/responses",
        protocol="openai-responses",
        quirks={"cache_marks": "prompt_cache_breakpoint", "request_id_header": "X-Client-Request-Id"},
        shared_host=True,
        models=("gpt-5.6-sol", "gpt-5.5-pro"),
        key_url="https://platform.openai.com/api-keys",
        source="OpenAI API reference: responses",
    ),
    row(
        "anthropic",
        "Anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        protocol="anthropic",
        models=("claude-sonnet-5-5", "claude-haiku-4-5"),
        key_url="https://console.anthropic.com/settings/keys",
        source="Anthropic API reference: messages",
    ),
    row(
        "gemini",
        "Google Gemini",
        "Google Gemini",
        f"https://{GEMINI_HOST}/v1beta",
        protocol="gemini",
        models=("gemini-3.8-flash", "gemini-3.5-flash-lite"),
        key_url="https://aistudio.google.com/apikey",
        source="Gemini API reference: generateContent",
    ),
    row(
        "mistral",
        "Mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        quirks={
            "input_audio_shape": "string",
            "file_part": "document_url",
            "file_urls": True,
            "tool_media": "native",
            "stream_usage": False,
            "short_call_ids": True,
        },
        models=("mistral-large-latest", "mistral-medium-latest"),
        key_url="https://console.mistral.ai/api-keys",
        source="Mistral API: chat completions",
    ),
    row(
        "groq",
        "Groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        quirks={"file_part": "none"},
        models=("openai/gpt-oss-120b", "llama-3.3-70b-versatile"),
        key_url="https://console.groq.com/keys",
        source="Groq: OpenAI compatibility",
    ),
    row(
        "openrouter",
        "OpenRouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        quirks={
            "video_part": "video_url",
            "file_urls": True,
            "reasoning_field": "reasoning",
            "replay_reasoning": "keep",
            "cache_marks": "cache_control",
        },
        models=("deepseek/deepseek-v4-flash", "anthropic/claude-sonnet-5"),
        key_url="https://openrouter.ai/settings/keys",
        source="OpenRouter: API reference, multimodal inputs",
    ),
)
