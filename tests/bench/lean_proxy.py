"""The baseline for `/v1`: a Django project that only forwards, with a lean ASGI handler and an aiohttp session.

It has no keys, no adaptation of files and no log. Run `uvicorn tests.bench.lean_proxy:application` with the target in
`BENCH_UPSTREAM`. Each call costs no more than Django, an HTTP client, and parsing the JSON body once.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import aiohttp
import django
import orjson
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import path

settings.configure(
    SECRET_KEY="bench",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[],
    DATA_UPLOAD_MAX_MEMORY_SIZE=None,
    USE_TZ=True,
)
django.setup()

UPSTREAM = os.environ.get("BENCH_UPSTREAM", "")
_sessions: list[aiohttp.ClientSession] = []


def session() -> aiohttp.ClientSession:
    if not _sessions:
        _sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1000)))
    return _sessions[0]


async def proxy(request: HttpRequest, behaviour: str) -> HttpResponseBase:
    parameters = orjson.loads(request.body)
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    for upstream_behaviour in ("fail", "plain") if behaviour == "failover" else (behaviour,):
        answer = await session().post(
            f"{UPSTREAM}/{upstream_behaviour}/v1/chat/completions", data=request.body, headers=headers
        )
        if answer.status != 503:
            break
        await answer.read()
    if parameters.get("stream"):
        return StreamingHttpResponse(blocks(answer), content_type="text/event-stream")
    return HttpResponse(await answer.read(), status=answer.status, content_type="application/json")


async def blocks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for block in answer.content.iter_any():
        yield block


urlpatterns = [path("<str:behaviour>/v1/chat/completions", proxy)]


class LeanHandler(ASGIHandler):
    """Django's ASGI handler, but without a thread for each request. A stream still ends if the caller disconnects."""

    async def __call__(self, scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if scope["type"] != "http":
            return await lifespan(receive, send)
        body = await whole_body(receive)
        request = ASGIRequest(scope, body)
        response = await self.get_response_async(request)
        if not response.streaming:
            return await self.send_response(response, send)
        sending = asyncio.ensure_future(self.send_response(response, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        return None


async def whole_body(receive: Callable[..., Any]) -> Any:
    file = io.BytesIO()
    while True:
        message: MutableMapping[str, Any] = await receive()
        file.write(message.get("body", b""))
        if not message.get("more_body"):
            file.seek(0)
            return file


async def lifespan(receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    for open_session in _sessions:
        await open_session.close()
    await send({"type": "lifespan.shutdown.complete"})


application = LeanHandler()
application.load_middleware(is_async=True)
