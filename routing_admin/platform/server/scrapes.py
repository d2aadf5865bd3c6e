"""Serve `/metrics`, next to the pages and on a separate port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from routing_admin.platform.auth.addresses import client_address
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.server.answers import Send, send_whole
from routing_admin.platform.server.connections import process_connections
from routing_admin.platform.server.fair_semaphore import bodies, calls, lookups, requests
from routing_admin.platform.server.hooks import server_hooks
from routing_admin.platform.server.metrics import (
    CONTENT_TYPE,
    MetricFamily,
    list_process_families,
    number,
    read_sources,
    render,
    sum_families,
)
from routing_admin.platform.server.request_limit import scope_headers
from routing_admin.platform.server.resources import count_tasks
from routing_admin.platform.server.worker_board import board

PATH = "/metrics"
MEBIBYTE = 2**20
TEXT = "text/plain; charset=utf-8"
FOR_OURS = (
    "These numbers are for 127.0.0.1. Another machine reads them with Authorization: Bearer and the token that "
    "ROUTING_ADMIN_METRICS_TOKEN sets.\n"
)
NOT_METRICS = "This port has /metrics and nothing else.\n"
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics in Prometheus's text format to callers that have the token or run on this machine, else a 403."""
    if not may_read_numbers(request.META, settings.TRUSTED_PROXIES):
        return HttpResponse(FOR_OURS, status=403, content_type=TEXT)
    return HttpResponse(write_numbers(), content_type=CONTENT_TYPE)


def is_metrics_port(scope: Mapping[str, Any]) -> bool:
    """Return whether a request arrived on the port that serves only metrics."""
    return settings.METRICS_PORT is not None and (scope.get("server") or ("", 0))[1] == settings.METRICS_PORT


async def answer_scrape(scope: Any, send: Send) -> None:
    """Answer a request on the metrics port, regardless of its `Host` header."""
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in scope_headers(scope).items()}
    status, kind, body = 200, CONTENT_TYPE, b""
    if scope["path"] != PATH or scope["method"] not in ("GET", "HEAD"):
        status, kind, body = 404, TEXT, NOT_METRICS.encode()
    # The metrics port has no proxy in front of it, so forwarding headers are not trusted.
    elif not may_read_numbers({**headers, "REMOTE_ADDR": (scope.get("client") or ("",))[0]}, 0):
        status, kind, body = 403, TEXT, FOR_OURS.encode()
    else:
        body = await asyncio.to_thread(_write_in_thread)
    await send_whole(status, {"content-type": kind}, body, send)


def may_read_numbers(meta: Mapping[str, Any], proxies: int) -> bool:
    """Return whether the caller has the metrics token, or runs on this machine and is not an untrusted proxy."""
    token, authorization = settings.METRICS_TOKEN, meta.get("HTTP_AUTHORIZATION", "")
    if token and constant_time_compare(authorization, f"Bearer {token}"):
        return True
    # A proxy on this machine that is not configured as trusted may be forwarding another machine's request.
    if not proxies and any(name in meta for name in FORWARDED):
        return False
    try:
        return ip_address(client_address(meta, proxies)).is_loopback
    except ValueError:
        return False


def write_numbers() -> bytes:
    counted, pids = board().collect()
    return render(sum_families(counted, read_sources(server_hooks().families), list_process_families(pids)))


def list_load() -> Iterator[MetricFamily]:
    connections, kinds = process_connections(), {"chat": calls(), "other": requests(), "lookup": lookups()}
    yield number("connections", "Open connections.", len(connections))
    yield number("connections_limit", "Connections that may be open.", connections.limits.total)
    yield number("large_bodies_bytes", "Memory for large bodies of chat calls.", bodies().in_use * MEBIBYTE)
    yield number("large_bodies_mebibytes", "Deprecated: see large_bodies_bytes.", bodies().in_use)
    yield number("tasks", "Tasks of the serving loops.", count_tasks())
    yield number("connections_refused", "Closed for being too many.", connections.refused, only_grows=True)
    yield number("large_bodies_refused", "Refused as overloaded.", bodies().refused, only_grows=True)
    for name, semaphore in kinds.items():
        yield number(f"{name}_requests", "Requests that are answered.", semaphore.in_use)
        yield number(f"{name}_requests_waiting", "Requests that wait for a place.", semaphore.waiting)
        yield number(f"{name}_requests_refused", "Refused as overloaded.", semaphore.refused, only_grows=True)


def _write_in_thread() -> bytes:
    with borrowed_connections():
        return write_numbers()
