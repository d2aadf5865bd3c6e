"""What an endpoint says of itself: its call, its base, its origin, and a name for who is there.

An endpoint whose path ends in its protocol's call is used as it is, else the call is appended; `/v1` is never
inserted, since some end in `/v3` or `/v4` (decision 9).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from capabilities.core.providers.presets import preset_for_host

CALLS = {"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/messages"}
GEMINI_HOST = "generativelanguage.googleapis.com"
GEMINI_OPENAI_PATH = "/v1beta/openai/chat/completions"
DEFAULT_PORTS = {"http": 80, "https": 443}
HOST_NOISE = frozenset({"api", "www", "com", "cn", "net", "org", "ai", "io", "dev", "co"})
WORD = re.compile(r"[a-z0-9]+")


def base_of(endpoint: str) -> str:
    """The base URL: no final slash and no protocol's call at its end; a query stays where it was."""
    parts = split(endpoint)
    path = parts.path.rstrip("/")
    for call in CALLS.values():
        path = path.removesuffix(call)
    return parts._replace(path=path.rstrip("/")).geturl()


def call_of(endpoint: str, protocol: str) -> str:
    """The full call URL of an OpenAI or Anthropic endpoint; Gemini's is its OpenAI-compatible one."""
    parts = split(endpoint)
    if protocol == "gemini" and parts.hostname == GEMINI_HOST:
        return parts._replace(path=GEMINI_OPENAI_PATH, query="").geturl()
    call = CALLS.get(protocol, "")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(call) else path + call).geturl()


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    return _origin(one) == _origin(other)


def provider_name(endpoint: str, names: Collection[str]) -> str:
    """A new provider's name: its preset's or of its host, words of the path and then numbers added while taken."""
    parts = split(endpoint)
    preset = preset_for_host(parts.hostname or "")
    name = preset.name if preset else _host_name(parts.hostname or "")
    if name not in names:
        return name
    for word in WORD.findall(parts.path.lower()):
        name = f"{name}-{word}"
        if name not in names:
            return name
    number = 2
    while f"{name}-{number}" in names:
        number += 1
    return f"{name}-{number}"


def _host_name(host: str) -> str:
    words = [word for word in WORD.findall(host.lower()) if word not in HOST_NOISE]
    return "-".join(words[-2:] if len(words) > 2 and not words[-1].isdigit() else words) or "provider"


def split(url: str) -> SplitResult:
    """The URL's parts; a text that is no URL is all path."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return SplitResult("", "", url, "", "")
    return parts


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = split(url)
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)
