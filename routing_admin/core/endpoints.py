"""What an endpoint says of itself: its protocol, its call, its base, its origin, and a name for who is there.

An endpoint whose path ends in its protocol's call is used as it is, else the call is appended; `/v1` is never
inserted, since some end in `/v3` or `/v4` (decision 9).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

CALLS = {"openai": "/chat/completions", "anthropic": "/messages"}
GEMINI_HOST = "generativelanguage.googleapis.com"
GEMINI_OPENAI_PATH = "/v1beta/openai/chat/completions"
DEFAULT_PORTS = {"http": 80, "https": 443}
HOST_NOISE = frozenset({"api", "www", "com", "cn", "net", "org", "ai", "io", "dev", "co"})
WORD = re.compile(r"[a-z0-9]+")


def protocol_of(endpoint: str) -> str:
    """The protocol where none is given: path `/messages` → anthropic, Google's host → gemini, else openai."""
    parts = split(endpoint)
    if parts.scheme == "echo":
        return "echo"
    if parts.path.rstrip("/").endswith(CALLS["anthropic"]):
        return "anthropic"
    if parts.hostname == GEMINI_HOST and not parts.path.startswith("/v1beta/openai"):
        return "gemini"
    return "openai"


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


def provider_name(endpoint: str, taken: Collection[str]) -> str:
    """A new provider's name: of its host, with words of its path and then numbers added while it is taken."""
    parts = split(endpoint)
    host = [word for word in WORD.findall((parts.hostname or "").lower()) if word not in HOST_NOISE]
    name = "-".join(host[-2:] if len(host) > 2 and not host[-1].isdigit() else host) or "provider"
    if name not in taken:
        return name
    for word in WORD.findall(parts.path.lower()):
        name = f"{name}-{word}"
        if name not in taken:
            return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


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
