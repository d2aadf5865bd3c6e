"""Answers that are handed to the server in one step: a whole one, head and body, or a block of a stream.

ASGI's messages are a write, a dictionary and a coroutine each. A server of ours offers the one step as an extension of
the scope; every other server, and whatever reads or changes the messages on their way (`withdraw_direct_answers`), is
sent the messages.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

EXTENSION = "routing_admin.direct_answers"
"""Its name in a scope. Both of its functions say whether they wrote what they were given, or it has to be sent:
`write_whole(status, lines of the head, body)`, and `write_block(block)` of an answer that was begun by a message."""
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header holds: it would end the line, or be cut off."""

Scope = Mapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def send_whole(scope: Scope, status: int, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    """Sends an answer with its length. Raises `ValueError` for a header that cannot be written."""
    pairs = [*header_pairs(headers), (b"content-length", b"%d" % len(body))]
    offer = _offer_of(scope)
    if offer is None or not offer["write_whole"](status, b"".join([b"%b: %b\r\n" % pair for pair in pairs]), body):
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})


def header_pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI takes them. Raises `ValueError` for one that cannot be written."""
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    if CONTROL.search(b" ".join([value for _, value in pairs])):
        raise ValueError("a header of the answer holds a control character")
    return pairs


def block_writer(scope: Scope) -> Callable[[bytes], bool]:
    """What writes a block of a stream, if it can be written at once; it says so."""
    offer = _offer_of(scope)
    write: Callable[[bytes], bool] = _write_nothing if offer is None else offer["write_block"]
    return write


def withdraw_direct_answers(scope: Scope) -> Scope:
    """The scope for an application whose messages are looked at on their way: without the extension."""
    if _offer_of(scope) is None:
        return scope
    others = {name: each for name, each in scope["extensions"].items() if name != EXTENSION}
    return {**scope, "extensions": others}


def _offer_of(scope: Scope) -> Mapping[str, Callable[..., bool]] | None:
    found: Mapping[str, Callable[..., bool]] | None = scope.get("extensions", {}).get(EXTENSION)
    return found


def _write_nothing(block: bytes) -> bool:
    return False
