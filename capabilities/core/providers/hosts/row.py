"""The row of a well-known host: its URL, protocol, compatibility options and limits.

Vendors can change URLs and names, so each row states its source and the date of its check.
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
    """A host: `hosts` are its host names, `slots` is its limits template, and `key_url` is the page for creating keys.

    `needs_key` is False for servers that work without a key. `models` are examples for a form's placeholder.
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
    """Return the row for a host. `also` are further host names.

    Local servers (`needs_key=False`) have no host name of their own. With `shared_host`, the URL's host name belongs to
    another row.
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
