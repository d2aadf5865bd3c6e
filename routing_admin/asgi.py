"""ASGI application of `routing-admin serve`: the agents' APIs, MCP, and Django for all other requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, MutableMapping
from typing import Any, cast

from django.conf import settings
from django.core.asgi import get_asgi_application

# Django must be set up before any module that contains models is imported.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
site = get_asgi_application()

from routing_admin.api.mcp.callers import PATH as MCP_PATH  # noqa: E402
from routing_admin.gateway.application import CHAT_APIS, READ_TIMEOUT_SECONDS, answer_call, find_chat_api  # noqa: E402
from routing_admin.gateway.key_cache import cached_principal  # noqa: E402
from routing_admin.platform.server.cross_origin import share  # noqa: E402
from routing_admin.platform.server.request_limit import App, limit_bodies, limit_requests  # noqa: E402
from routing_admin.platform.server.resources import short_switches  # noqa: E402
from routing_admin.platform.server.scrapes import answer_scrape, is_metrics_port  # noqa: E402
from routing_admin.platform.server.url_aliases import resolve_path  # noqa: E402
from routing_admin.runtime import Message, Receive, Send, lifespan, mcp_app  # noqa: E402


def find_agent_id(headers: Mapping[str, str]) -> str:
    """Return the id of the agent whose key is in the request's headers, or "" if that key is not cached."""
    caller = cached_principal(headers)
    return "" if caller is None else caller.key_owner


pages = limit_requests(limit_bodies(cast(App, site)), find_agent_id)

tools = limit_requests(
    limit_bodies(cast(App, lambda scope, receive, send: mcp_app()(scope, receive, send))), find_agent_id
)


async def answer_request(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    if is_metrics_port(scope):
        await answer_scrape(scope, send)
        return
    # Chat API paths are already in their final form, and resolving them would only cost time.
    if scope["path"] not in CHAT_APIS:
        scope["path"] = resolve_path(scope["path"])
    api = find_chat_api(scope) if scope["type"] == "http" else None
    if api is not None:
        await answer_call(api, scope, receive, send)
        return
    app = tools if scope["path"] == MCP_PATH and scope["type"] == "http" else pages
    with short_switches():
        await app(scope, receive, limit_slow_readers(send))


application = share(cast(App, answer_request), settings.CORS_ORIGINS)


def limit_slow_readers(send: Send, seconds: float = READ_TIMEOUT_SECONDS) -> Send:
    """Wrap `send` with a timeout for clients that stop reading. The timeout also ends the upstream request."""

    async def sending(message: Message) -> None:
        async with asyncio.timeout(seconds):
            await send(message)

    return sending
