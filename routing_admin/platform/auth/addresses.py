"""Determine clients' IP addresses, and the addresses under which clients are counted."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any


def client_address(meta: Mapping[str, Any], proxies: int) -> str:
    """Return the peer's address, or behind `proxies` trusted proxies the address that the outermost proxy saw."""
    seen = [part.strip() for part in str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",") if part.strip()]
    if 0 < proxies <= len(seen):
        return seen[-proxies]
    return str(meta.get("REMOTE_ADDR", ""))


def client_network(address: str) -> str:
    """Return the address under which a client is counted, for IPv6 the /64 network, which one subscriber controls."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((parsed, 64), strict=False))
