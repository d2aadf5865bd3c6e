"""A whole answer leaves the server in one write: its head and its body are one packet and one system call.

ASGI's two messages are two writes. A server of ours offers the one as an extension of the scope; every other server,
and whatever reads or changes the messages on their way (`withdraw_whole_answers`), is sent the two.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

EXTENSION = "routing_admin.whole_answer"
"""Its name in a scope. Its `write` takes the status, the lines of the head and the body, and says if it wrote them."""
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header holds: it would end the line, or be cut off."""

Scope = Mapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def send_whole(scope: Scope, status: int, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    """Sends an answer with its length. Raises `ValueError` for a header that cannot be written."""
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    pairs.append((b"content-length", b"%d" % len(body)))
    if CONTROL.search(b" ".join([value for _, value in pairs])):
        raise ValueError("a header of the answer holds a control character")
    offer = scope.get("extensions", {}).get(EXTENSION)
    if offer is None or not offer["write"](status, b"".join([b"%b: %b\r\n" % pair for pair in pairs]), body):
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})


def withdraw_whole_answers(scope: Scope) -> Scope:
    """The scope for an application whose messages are looked at on their way: without the extension."""
    extensions = scope.get("extensions", {})
    if EXTENSION not in extensions:
        return scope
    return {**scope, "extensions": {name: each for name, each in extensions.items() if name != EXTENSION}}
