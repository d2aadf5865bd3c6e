"""A server answers calls despite many half-open connections and many idle connections to providers."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from routing_admin.platform.server.resources import MAX_DESCRIPTORS
from tests.gateway.serving import routing, served
from tests.lab import Lab

SETTINGS = {"HEAD_SECONDS": "1.5", "BODY_SECONDS": "1.5", "CONNECTIONS_PER_ADDRESS": "100"}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n"
UNFINISHED = (b"", b"POST /v1/ch", HEAD, HEAD + b"\r\n{")
RESET = b"reset"
"""The result if the server closed the connection before it had read all data. The error that it sent may then be lost.
"""


async def read_status(reader: asyncio.StreamReader) -> bytes:
    try:
        response = await reader.read()
        return response.split(b" ", 2)[1] if response else RESET
    except ConnectionResetError:
        return RESET


async def test_calls_are_answered_while_half_open_connections_time_out(tmp_path: Path):
    with served(tmp_path, settings=SETTINGS) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(160)]
        for number, (_, writer) in enumerate(opened):
            writer.write(UNFINISHED[number % len(UNFINISHED)])
        assert await asyncio.to_thread(server.get, "/v1/models")
        ends = [await read_status(reader) for reader, _ in opened]
        soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, MAX_DESCRIPTORS)
    assert set(ends) <= {b"408", b"503", RESET}
    assert ends.count(b"408") >= 40


DESCRIPTORS, CALLERS = 256, 60
"""With 256 file descriptors, a process accepts 64 callers and opens as many connections to providers."""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc, which is Linux's")
async def test_idle_connections_to_providers_leave_enough_descriptors_for_callers(tmp_path: Path):
    with ExitStack() as stack:
        labs = [stack.enter_context(Lab()) for _ in range(4)]
        prefix = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh"]
        settings = {"TRUSTED_PROXIES": "1", "ALLOWED_ORIGINS": "*"}
        server = stack.enter_context(
            served(tmp_path, configured=lambda lab: with_further_providers(lab, labs), settings=settings, prefix=prefix)
        )
        for number in range(len(labs)):
            assert set(await call_at_once(server.url, server.key, f"host-{number}/fault:delay:seconds=1")) == {200}
        open_files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        assert set(await call_at_once(server.url, server.key, "host-0/lab")) == {200}
    assert open_files < DESCRIPTORS - CALLERS
    assert "A process may open 256 files, so callers may have 64 connections" in server.log


def with_further_providers(lab: Lab, labs: list[Lab]) -> dict[str, Any]:
    configuration = routing(lab)
    configuration["providers"] += [
        {"providerName": f"host-{number}", "apiKey": "k", "endpoint": provider.url("openai"), "defaultModel": "lab"}
        for number, provider in enumerate(labs)
    ]
    return configuration


async def call_at_once(url: str, key: str, model: str) -> list[int]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]})
    limits = httpx.Limits(max_keepalive_connections=0, max_connections=CALLERS)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "x-forwarded-for": "203.0.113.1"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60) as client:
        calls = (client.post("/v1/chat/completions", content=body) for _ in range(CALLERS))
        return [answer.status_code for answer in await asyncio.gather(*calls)]
