"""Look up well-known provider hosts by DNS name or URL, and derive protocol and compatibility options from a URL.

A row in `hosts/` prefills the form for a new provider and contains the default options for its host. A provider's own
settings override the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, urlsplit

from capabilities.core.providers.hosts.china import CHINA
from capabilities.core.providers.hosts.local import LOCAL
from capabilities.core.providers.hosts.row import HostPreset
from capabilities.core.providers.hosts.worldwide import GEMINI_HOST, GEMINI_THROUGH_OPENAI, WORLDWIDE

PRESETS: tuple[HostPreset, ...] = (*WORLDWIDE, *CHINA, *LOCAL)
BY_NAME: Mapping[str, HostPreset] = MappingProxyType({preset.name: preset for preset in PRESETS})
_BY_HOST = {host: preset for preset in PRESETS for host in preset.hosts if host}

_CLOUDS = (
    ("bedrock", re.compile(r"^bedrock(-[a-z]+)*\..+\.(amazonaws\.com(\.cn)?|api\.aws)$")),
    ("vertex", re.compile(r"^([a-z0-9-]+-)?aiplatform(\.[a-z]+\.rep)?\.googleapis\.com$")),
)
"""Limits templates for Claude models on cloud hosts. These hosts have no row, because their names contain a region."""


def preset_for_host(host: str) -> HostPreset | None:
    """Return the row with this DNS name, or None if the host is unknown or local."""
    return _BY_HOST.get(host.strip().lower().rstrip("."))


def preset_for_url_host(endpoint: str) -> HostPreset | None:
    """Return the row for the host in a URL, whatever protocol the URL has, or None if the host is unknown."""
    return preset_for_host(_parts(endpoint).hostname or "")


def preset_for_endpoint(endpoint: str) -> HostPreset | None:
    """Return the row for a URL, or None if no row has its host and protocol."""
    preset = preset_for_host(_parts(endpoint).hostname or "")
    return preset if preset is not None and preset.protocol == endpoint_protocol(endpoint) else None


@lru_cache(maxsize=1000)
def limits_template(endpoint: str, protocol: str) -> str | None:
    """Return the name of an endpoint's limits template: that of its host, or the one for Claude on a cloud host."""
    host = (_parts(endpoint).hostname or "").lower()
    if (preset := preset_for_host(host)) is not None:
        return preset.slots
    return next((name for name, hosts in _CLOUDS if protocol == "anthropic" and hosts.search(host)), None)


def quirks_for(endpoint: str, quirks: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the effective compatibility options for an endpoint.

    The provider's own options override the options in the host's row.
    """
    host = _host_quirks(endpoint)
    if not quirks:
        return host
    # Null means the host's default.
    set_quirks = {name: value for name, value in quirks.items() if value is not None}
    return MappingProxyType({**host, **set_quirks})


@lru_cache(maxsize=1000)
def _host_quirks(endpoint: str) -> Mapping[str, Any]:
    preset = preset_for_endpoint(endpoint)
    if preset is None and _parts(endpoint).hostname == GEMINI_HOST:
        return GEMINI_THROUGH_OPENAI
    return MappingProxyType(dict(preset.quirks) if preset else {})


def endpoint_protocol(endpoint: str) -> str:
    """Return the protocol of an endpoint whose provider sets none.

    The protocol is `echo` for `echo://`, `anthropic` for a path that ends in `/messages`, `openai-responses` for a path
    that ends in `/responses`, `gemini` for Google's host (except its OpenAI-compatible path), and otherwise `openai`.
    """
    parts = _parts(endpoint)
    if parts.scheme == "echo":
        return "echo"
    if parts.path.rstrip("/").endswith("/messages"):
        return "anthropic"
    if parts.path.rstrip("/").endswith("/responses"):
        return "openai-responses"
    # Google serves an OpenAI-compatible API on the same host.
    if parts.hostname == GEMINI_HOST and not parts.path.startswith("/v1beta/openai"):
        return "gemini"
    return "openai"


def _parts(endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint.strip())
        # `urlsplit` parses the port only when it is read, which raises ValueError if the port is invalid.
        _ = parts.hostname, parts.port
    except ValueError:
        return SplitResult("", "", endpoint, "", "")
    return parts


__all__ = [
    "BY_NAME",
    "PRESETS",
    "HostPreset",
    "endpoint_protocol",
    "limits_template",
    "preset_for_endpoint",
    "preset_for_host",
    "preset_for_url_host",
    "quirks_for",
]
