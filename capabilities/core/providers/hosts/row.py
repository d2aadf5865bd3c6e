"""One well-known host as a row: where it is, which protocol it speaks, and in which ways it is its own.

Addresses and names can be changed by their owners, so each row says where it comes from and when it was looked up.
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


def row(name: str, en: str, zh: str, base_url: str, **more: Any) -> HostPreset:
    """A host's row; `also` are further names of it.

    Local servers (`needs_key=False`) answer to no host name, nor does a `shared_host`, which is another row's.
    """
    host, also = urlsplit(base_url).hostname or "", tuple(more.pop("also", ()))
    hosts = also if more.pop("shared_host", False) or not more.get("needs_key", True) else (host, *also)
    quirks = MappingProxyType(dict(more.pop("quirks", {})))
    more.setdefault("slots", name)
    return HostPreset(name, en, zh, base_url, quirks=quirks, hosts=hosts, **more)
