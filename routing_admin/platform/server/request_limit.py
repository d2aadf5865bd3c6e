"""Limit requests before they reach Django: the size of their bodies, and how many of them run concurrently.

The size of a body is counted while it is received, whatever length was announced, because Django writes the whole body
to disk before any view can check the key. Views apply further, more specific limits.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from django.conf import settings

from artifacts.storage.uploads import TokenState, check_upload_address
from capabilities.fair_slots import requester
from capabilities.json_bodies import MIB, is_buffered, received_limit
from routing_admin.platform.auth.addresses import client_address, client_network
from routing_admin.platform.auth.known_callers import UNKNOWN_BYTES, is_known_caller
from routing_admin.platform.server.answers import send_refusal
from routing_admin.platform.server.connections import HEALTH_PATHS
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.fair_semaphore import OverloadedError, Slot, bodies, requests

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]
IsKnown = Callable[[Mapping[str, str]], Awaitable[bool]]

ANOTHER_LINK = "Get a new one with store_artifact or POST /api/v1/uploads."
SETTING = "ROUTING_ADMIN_MAX_UPLOAD_BYTES"
"""Name of the setting that limits the size of request bodies."""


DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FULL = "The disk for large requests is full. Send the request again once there is space."

log = logging.getLogger(__name__)


class _BodyTooLargeError(Exception):
    """More bytes were announced or received than the path allows."""


class UnknownCallerError(Exception):
    """More bytes were announced or received than an unauthenticated caller may send."""


def limit_bodies(app: App, is_known: IsKnown = is_known_caller) -> App:
    """Wrap the application to reject bodies that are too large for the path or for an unauthenticated caller."""

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = _CountedBody(scope, receive, send, is_known)
        try:
            await body.check_announced()
            await app(scope, body.receive, body.send)
        except (_BodyTooLargeError, UnknownCallerError):
            # Once a response has started, it cannot be replaced by an error.
            if not body.started:
                await body.refuse()
        except OverloadedError as error:
            if body.started:
                raise
            await send_refusal(scope, error.status, error.code, error.message, send)
        except OSError as error:
            if body.started or error.errno not in DISK_IS_FULL:
                raise
            log.error("a body cannot be held while it is received: %s", error)
            await send_refusal(scope, 507, "storage_full", FULL, send)
        finally:
            body.room.leave()

    return application


class _CountedBody:
    """The body of one request, counted while it is received; `started` is set when the response starts."""

    def __init__(self, scope: Any, receive: Receive, send: Send, is_known: IsKnown) -> None:
        self._scope, self._receive, self._send, self._is_known = scope, receive, send, is_known
        self._limit, self._announced = received_limit(scope["path"]), announced_length(scope)
        self._received, self._known, self.started = 0, False, False
        self.room = Slot(bodies())

    async def check_announced(self) -> None:
        await self._check(self._announced)

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        await self._check(self._received)
        return message

    async def send(self, message: Message) -> None:
        self.started = True
        await self._send(message)

    async def refuse(self) -> None:
        if max(self._announced, self._received) > self._limit:
            await refuse(self._scope, self._limit, self._send)
        else:
            await refuse_unknown(self._scope, self._send)

    async def _check(self, size: int) -> None:
        if size > self._limit:
            raise _BodyTooLargeError
        if size <= UNKNOWN_BYTES or self._known:
            return
        is_link = check_upload_address(self._scope["path"]) is TokenState.VALID
        self._known = is_link or await self._is_known(scope_headers(self._scope))
        if not self._known:
            raise UnknownCallerError
        # A large body of a chat call stays in memory until the call is answered.
        if is_buffered(self._scope["path"]):
            self.room.enter_at_once(requester.get(), mebibytes(self._announced or self._limit))


def announced_length(scope: Any) -> int:
    """Return the Content-Length of a request, or 0 if it is missing or invalid."""
    value = dict(scope["headers"]).get(b"content-length", b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0


def mebibytes(size: int) -> int:
    return -(-size // MIB)


async def refuse(scope: Any, limit: int, send: Send) -> None:
    """Send a 413 in the error format of the path, and close the connection."""
    message = f"The request is larger than the limit of {limit} bytes here. Send less, or raise {SETTING}."
    await send_refusal(scope, 413, "too_large", message, send, limit=limit)


async def refuse_unknown(scope: Any, send: Send) -> None:
    """Reject a large body from an unauthenticated caller, with a 401 for an API or a 413 for a page."""
    path = scope["path"]
    link = check_upload_address(path)
    if link is not None:
        await _refuse_link(scope, link, send)
        return
    rule = f"Without a valid key or session, the limit is {UNKNOWN_BYTES} bytes."
    if path.startswith(("/api/", "/v1/", "/v1beta/", "/mcp")):
        message = f"The agent key is missing or not valid. {rule} Send Authorization: Bearer with a valid key."
        await send_refusal(scope, 401, "key_invalid", message, send)
    else:
        await send_refusal(scope, 413, "too_large", f"{rule} Sign in first.", send, limit=UNKNOWN_BYTES)


async def _refuse_link(scope: Any, state: TokenState, send: Send) -> None:
    # Send the same response as to a call with a small body.
    if state is TokenState.EXPIRED:
        await send_refusal(scope, 410, "upload_link_over", f"This upload link has expired. {ANOTHER_LINK}", send)
    else:
        await send_refusal(scope, 404, "not_found", f"There is no such upload link. {ANOTHER_LINK}", send)


def scope_headers(scope: Any) -> dict[str, str]:
    """Return the headers by lower-case name; the values of a repeated header are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


def limit_requests(app: App, find_agent_id: Callable[[Mapping[str, str]], str]) -> App:
    """Wrap the application to share its threads fairly between callers; respond with a 503 if no thread becomes free.

    `find_agent_id` returns the agent if the key is cached; other requests are counted by IP address.
    """

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await app(scope, receive, send)
            return
        slot, name = Slot(requests()), caller_name(scope, find_agent_id)
        requester.set(name)
        try:
            await slot.enter(name)
        except (OverloadedError, DrainingError) as error:
            await send_refusal(scope, error.status, error.code, error.message, send)
            return
        try:
            await app(scope, receive, send)
        finally:
            slot.leave()

    return application


def caller_name(scope: Any, find_agent_id: Callable[[Mapping[str, str]], str]) -> str:
    """Return the agent or IP address that a request is attributed to."""
    headers = scope_headers(scope)
    peer = (scope.get("client") or ("",))[0]
    meta = {"HTTP_X_FORWARDED_FOR": headers.get("x-forwarded-for", ""), "REMOTE_ADDR": peer}
    return find_agent_id(headers) or client_network(client_address(meta, settings.TRUSTED_PROXIES))
