"""Well-known hosts as rows: where they are, which protocol they speak, and in which ways they are their own.

A row is an offer for a form and the default quirks of its host; a provider's own settings come before it. Addresses
and names can be changed by their owners, so each row says where it comes from and when it was looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, urlsplit

CHECKED = "2026-11-20"
GEMINI_HOST = "generativelanguage.googleapis.com"


@dataclass(frozen=True, slots=True)
class Preset:
    """One host: `hosts` are the names it answers to, `slots` the template of its limits, `key_url` where keys are made.

    `needs_key` is False for servers that run without one. `models` are examples for a placeholder, nothing more.
    """

    name: str
    label_en: str
    label_zh: str
    base_url: str
    protocol: str = "openai"
    quirks: Mapping[str, Any] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    slots: str = ""
    models: tuple[str, ...] = ()
    key_url: str = ""
    needs_key: bool = True
    source: str = ""
    checked_on: str = CHECKED


def _row(name: str, en: str, zh: str, base_url: str, **more: Any) -> Preset:
    host = urlsplit(base_url).hostname or ""
    hosts = (host, *more.pop("also", ())) if more.get("needs_key", True) else tuple(more.pop("also", ()))
    quirks = MappingProxyType(dict(more.pop("quirks", {})))
    more.setdefault("slots", name)
    return Preset(name, en, zh, base_url, quirks=quirks, hosts=hosts, **more)


PRESETS: tuple[Preset, ...] = (
    _row(
        "openai",
        "OpenAI",
        "OpenAI",
        "https://api.openai.com/v1",
        quirks={"max_tokens_field": "max_completion_tokens"},
        models=("gpt-5.6", "gpt-4o"),
        key_url="https://platform.openai.com/api-keys",
        source="OpenAI API reference: chat completions",
    ),
    _row(
        "anthropic",
        "Anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        protocol="anthropic",
        models=("claude-sonnet-4-5",),
        key_url="https://console.anthropic.com/settings/keys",
        source="Anthropic API reference: messages",
    ),
    _row(
        "gemini",
        "Google Gemini",
        "Google Gemini",
        f"https://{GEMINI_HOST}/v1beta",
        protocol="gemini",
        models=("gemini-2.5-pro", "gemini-2.5-flash"),
        key_url="https://aistudio.google.com/apikey",
        source="Gemini API reference: generateContent",
    ),
    _row(
        "deepseek",
        "DeepSeek",
        "DeepSeek 深度求索",
        "https://api.deepseek.com",
        quirks={"replay_reasoning": "keep", "structured": "json_object", "file_part": "none"},
        models=("deepseek-chat", "deepseek-reasoner"),
        key_url="https://platform.deepseek.com/api_keys",
        source="DeepSeek API documents: chat completion, JSON output, thinking mode",
    ),
    _row(
        "dashscope",
        "Qwen (DashScope)",
        "通义千问（百炼 DashScope）",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        also=("dashscope-intl.aliyuncs.com",),
        quirks={"structured": "json_object", "video_part": "video_url", "file_part": "none"},
        models=("qwen-plus", "qwen-vl-max"),
        key_url="https://bailian.console.aliyun.com/?tab=model#/api-key",
        source="Alibaba Cloud Model Studio: OpenAI compatibility",
    ),
    _row(
        "zhipu",
        "Zhipu GLM",
        "智谱 GLM",
        "https://open.bigmodel.cn/api/paas/v4",
        also=("api.z.ai",),
        quirks={"structured": "json_object", "video_part": "video_url", "file_part": "none"},
        models=("glm-4.6", "glm-4.5v"),
        key_url="https://open.bigmodel.cn/usercenter/apikeys",
        source="Zhipu open platform: chat completions",
    ),
    _row(
        "moonshot",
        "Moonshot (Kimi)",
        "月之暗面 Kimi",
        "https://api.moonshot.cn/v1",
        also=("api.moonshot.ai",),
        quirks={"replay_reasoning": "keep", "structured": "json_object", "file_part": "none"},
        models=("kimi-k2-0905-preview", "moonshot-v1-8k"),
        key_url="https://platform.moonshot.cn/console/api-keys",
        source="Moonshot open platform: chat completions",
    ),
    _row(
        "ark",
        "Volcengine Ark (Doubao)",
        "火山方舟（豆包）",
        "https://ark.cn-beijing.volces.com/api/v3",
        quirks={"video_part": "video_url", "file_part": "none"},
        models=("doubao-seed-1-6-250615",),
        key_url="https://console.volcengine.com/ark",
        source="Volcengine Ark: chat completions",
    ),
    _row(
        "minimax",
        "MiniMax",
        "MiniMax 稀宇",
        "https://api.minimaxi.com/v1",
        also=("api.minimax.io", "api.minimax.chat"),
        quirks={"file_part": "none"},
        models=("MiniMax-M2",),
        key_url="https://platform.minimaxi.com/user-center/basic-information/interface-key",
        source="MiniMax open platform: OpenAI compatibility",
    ),
    _row(
        "qianfan",
        "Baidu Qianfan (ERNIE)",
        "百度千帆（文心）",
        "https://qianfan.baidubce.com/v2",
        quirks={"structured": "json_object", "file_part": "none"},
        models=("ernie-4.5-turbo-128k",),
        key_url="https://console.bce.baidu.com/iam/#/iam/apikey/list",
        source="Baidu Qianfan: ModelBuilder V2 chat",
    ),
    _row(
        "hunyuan",
        "Tencent Hunyuan",
        "腾讯混元",
        "https://api.hunyuan.cloud.tencent.com/v1",
        quirks={"structured": "prompt", "file_part": "none"},
        models=("hunyuan-turbos-latest",),
        key_url="https://console.cloud.tencent.com/hunyuan/start",
        source="Tencent Cloud Hunyuan: OpenAI compatibility",
    ),
    _row(
        "siliconflow",
        "SiliconFlow",
        "硅基流动",
        "https://api.siliconflow.cn/v1",
        also=("api.siliconflow.com",),
        quirks={"structured": "json_object", "file_part": "none"},
        models=("deepseek-ai/DeepSeek-V3", "Qwen/Qwen2.5-72B-Instruct"),
        key_url="https://cloud.siliconflow.cn/account/ak",
        source="SiliconFlow: chat completions",
    ),
    _row(
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
        },
        models=("mistral-large-latest", "pixtral-large-latest"),
        key_url="https://console.mistral.ai/api-keys",
        source="Mistral API: chat completions",
    ),
    _row(
        "groq",
        "Groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        quirks={"file_part": "none"},
        models=("llama-3.3-70b-versatile",),
        key_url="https://console.groq.com/keys",
        source="Groq: OpenAI compatibility",
    ),
    _row(
        "openrouter",
        "OpenRouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        quirks={
            "video_part": "video_url",
            "file_urls": True,
            "reasoning_field": "reasoning",
            "replay_reasoning": "keep",
        },
        models=("deepseek/deepseek-chat", "openai/gpt-4o"),
        key_url="https://openrouter.ai/settings/keys",
        source="OpenRouter: API reference, multimodal inputs",
    ),
    _row(
        "mimo",
        "Xiaomi MiMo",
        "小米 MiMo",
        "https://api.xiaomimimo.com/v1",
        quirks={"video_part": "video_url", "file_part": "none"},
        models=("mimo-v2-flash",),
        key_url="https://platform.xiaomimimo.com",
        source="Xiaomi MiMo open platform",
    ),
    _row(
        "ollama",
        "Ollama",
        "Ollama（本机）",
        "http://127.0.0.1:11434/v1",
        quirks={"no_remote_image_urls": True, "file_part": "none"},
        models=("llama3.2", "qwen2.5vl"),
        needs_key=False,
        source="Ollama: OpenAI compatibility",
    ),
    _row(
        "vllm",
        "vLLM",
        "vLLM（自建）",
        "http://127.0.0.1:8000/v1",
        quirks={"video_part": "video_url", "file_part": "none"},
        models=("Qwen/Qwen2.5-VL-7B-Instruct",),
        needs_key=False,
        source="vLLM: OpenAI-compatible server",
    ),
    _row(
        "lmstudio",
        "LM Studio",
        "LM Studio（本机）",
        "http://127.0.0.1:1234/v1",
        quirks={"no_remote_image_urls": True, "file_part": "none"},
        models=("qwen2.5-7b-instruct",),
        needs_key=False,
        source="LM Studio: OpenAI compatibility endpoints",
    ),
    _row(
        "llamacpp",
        "llama.cpp server",
        "llama.cpp（本机）",
        "http://127.0.0.1:8080/v1",
        quirks={"file_part": "none"},
        needs_key=False,
        source="llama.cpp: server",
    ),
)

BY_NAME: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in PRESETS})
_BY_HOST = {host: preset for preset in PRESETS for host in preset.hosts if host}


def preset_for_host(host: str) -> Preset | None:
    """The row of a host name; None for a host that is not well known, and for every local one."""
    return _BY_HOST.get(host.strip().lower().rstrip("."))


def preset_for_endpoint(endpoint: str) -> Preset | None:
    """The row of the host in a URL, where the URL also speaks that row's protocol."""
    preset = preset_for_host(_parts(endpoint).hostname or "")
    return preset if preset is not None and preset.protocol == protocol_of(endpoint) else None


def quirks_for(endpoint: str, quirks: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options in effect at an endpoint: its host's row, then the provider's own, which come before it."""
    preset = preset_for_endpoint(endpoint)
    own = {name: value for name, value in quirks.items() if value is not None}
    return MappingProxyType({**(preset.quirks if preset else {}), **own})


def protocol_of(endpoint: str) -> str:
    """The protocol of an endpoint that names none (decision 11).

    `echo://` is echo, a path that ends in `/messages` anthropic, Google's host gemini (but for its
    OpenAI-compatible path), everything else openai.
    """
    parts = _parts(endpoint)
    if parts.scheme == "echo":
        return "echo"
    if parts.path.rstrip("/").endswith("/messages"):
        return "anthropic"
    if parts.hostname == GEMINI_HOST and not parts.path.startswith("/v1beta/openai"):
        return "gemini"
    return "openai"


def _parts(endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint.strip())
        _ = parts.hostname, parts.port
    except ValueError:
        return SplitResult("", "", endpoint, "", "")
    return parts
