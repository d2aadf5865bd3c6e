"""Send whole responses as ASGI messages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters that no header may contain: they would end the line or be cut off."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def send_whole(status: int, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    """Send a response with its length. Raise `ValueError` for an invalid header."""
    pairs = [*header_pairs(headers), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def header_pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI takes them. Raise `ValueError` for an invalid header."""
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    if CONTROL.search(b" ".join([value for _, value in pairs])):
        raise ValueError("a header of the answer holds a control character")
    return pairs
