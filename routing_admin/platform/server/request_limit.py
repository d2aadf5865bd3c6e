"""Limit concurrent pages and API requests, each of which needs a thread, fairly between callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from capabilities.fair_slots import requester
from routing_admin.platform.auth.addresses import address_in, place_of
from routing_admin.platform.server.body_limit import App, Receive, Send, headers_of_scope
from routing_admin.platform.server.connections import HEALTH_PATHS
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.fair_semaphore import OverloadedError, Slot, requests
from routing_admin.platform.server.refusals import send_refusal


def limit_requests(app: App, agent_of: Callable[[Mapping[str, str]], str]) -> App:
    """Wrap the application to answer 503 if no slot becomes free.

    `agent_of` returns the agent of a cached key; other requests count by IP address.
    """

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await app(scope, receive, send)
            return
        slot, name = Slot(requests()), name_of(scope, agent_of)
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


def name_of(scope: Any, agent_of: Callable[[Mapping[str, str]], str]) -> str:
    """Return the agent or the IP address for which a request counts."""
    headers = headers_of_scope(scope)
    peer = (scope.get("client") or ("",))[0]
    meta = {"HTTP_X_FORWARDED_FOR": headers.get("x-forwarded-for", ""), "REMOTE_ADDR": peer}
    return agent_of(headers) or place_of(address_in(meta, settings.TRUSTED_PROXIES))
