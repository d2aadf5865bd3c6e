"""The chat call past everything that pages need: no session, no address table, no thread of its own per request.

Django's own handler opens a thread per request and runs each of the pages' middlewares in it (docs/data-plane.md).
Here the request goes to its view at once; what reads rows runs in threads that stay, with connections that stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import DisallowedHost, RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpResponse, HttpResponseBase

from routing_admin.gateway.chat.completions import completions
from routing_admin.gateway.errors import GatewayError, response_of
from routing_admin.server.request_id import request_id_of


class LeanRequest(ASGIRequest):
    """A chat request; `in_own_threads` says that what reads rows may run in any thread."""

    in_own_threads = True


class LeanHandler(ASGIHandler):
    """Answers the chat call; Django's request and response without Django's way between them."""

    request_class = LeanRequest

    def load_middleware(self, is_async: bool = False) -> None:
        """None: the view checks keys, limits and errors by itself."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One call; when its caller leaves, the work for it is cancelled."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        try:
            request = LeanRequest(scope, body)
            leaving = asyncio.create_task(self.listen_for_disconnect(receive))
            await _first_of((leaving, asyncio.create_task(self._answered(request, send))))
        finally:
            body.close()

    async def _answered(self, request: LeanRequest, send: Any) -> None:
        response = await answer(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if isinstance(response, HttpResponse):
            response.headers["Content-Length"] = str(len(response.content))
        await self.send_response(response, send)


async def answer(request: LeanRequest) -> HttpResponseBase:
    """The view's answer; 400 for a host name that is none of ours."""
    try:
        request.get_host()
    except DisallowedHost:
        message = "This host name is not one of ROUTING_ADMIN_ALLOWED_HOSTS."
        return response_of(GatewayError(400, "host_not_allowed", message), request_id_of(request))
    return await completions(request)


async def _first_of(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Waits for either, ends both; raises what went wrong in the work, not that the caller left."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, RequestAborted):
                await task
