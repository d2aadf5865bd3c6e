"""Model servers on the local machine. They need no key, and cannot be recognised by their URLs."""

from __future__ import annotations

from capabilities.core.providers.hosts.row import HostPreset, row

LOCAL: tuple[HostPreset, ...] = (
    row(
        "ollama",
        "Ollama",
        "Ollama（本机）",
        "http://127.0.0.1:11434/v1",
        quirks={"no_remote_image_urls": True, "file_part": "none"},
        models=("llama3.2", "qwen2.5vl"),
        needs_key=False,
        source="Ollama: OpenAI compatibility",
    ),
    row(
        "vllm",
        "vLLM",
        "vLLM（自建）",
        "http://127.0.0.1:8000/v1",
        quirks={"video_part": "video_url", "file_part": "none"},
        models=("Qwen/Qwen2.5-VL-7B-Instruct",),
        needs_key=False,
        source="vLLM: OpenAI-compatible server",
    ),
    row(
        "lmstudio",
        "LM Studio",
        "LM Studio（本机）",
        "http://127.0.0.1:1234/v1",
        quirks={"no_remote_image_urls": True, "file_part": "none"},
        models=("qwen2.5-7b-instruct",),
        needs_key=False,
        source="LM Studio: OpenAI compatibility endpoints",
    ),
    row(
        "llamacpp",
        "llama.cpp server",
        "llama.cpp（本机）",
        "http://127.0.0.1:8080/v1",
        quirks={"file_part": "none"},
        needs_key=False,
        source="llama.cpp: server",
    ),
)
