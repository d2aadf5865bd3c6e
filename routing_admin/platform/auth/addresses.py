"""Where does a request come from, and whom does an address stand for?"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any


def address_in(meta: Mapping[str, Any], proxies: int) -> str:
    """Where a request comes from: its peer, or with so many trusted proxies in front what the outermost of them saw."""
    seen = [part.strip() for part in str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",") if part.strip()]
    if 0 < proxies <= len(seen):
        return seen[-proxies]
    return str(meta.get("REMOTE_ADDR", ""))


def place_of(address: str) -> str:
    """Whom an address stands for: itself, and of IPv6 its /64, since one subscriber has all of that."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((parsed, 64), strict=False))
