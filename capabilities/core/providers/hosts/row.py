"""The table row for a well-known provider host: its URL, protocol, compatibility options and limits.

Vendors can change URLs and names, so each row states its source and when it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

CHECKED = "2026-11-20"


@dataclass(frozen=True, slots=True)
class HostPreset:
    """A provider host: its DNS names (`hosts`), limits template (`slots`), and page for creating keys (`key_url`).

    `needs_key` is False for servers that work without a key. `models` are examples that are shown as a form field's
    placeholder.
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


def row(name: str, en: str, zh: str, base_url: str, **fields: Any) -> HostPreset:
    """Return the row for a host. `also` lists additional DNS names of the host.

    The URL's DNS name is not included for local servers (`needs_key=False`) or if it belongs to another row
    (`shared_host`).
    """
    host, further_hosts = urlsplit(base_url).hostname or "", tuple(fields.pop("also", ()))
    hosts = (
        further_hosts
        if fields.pop("shared_host", False) or not fields.get("needs_key", True)
        else (host, *further_hosts)
    )
    quirks = MappingProxyType(dict(fields.pop("quirks", {})))
    fields.setdefault("slots", name)
    return HostPreset(name, en, zh, base_url, quirks=quirks, hosts=hosts, **fields)
