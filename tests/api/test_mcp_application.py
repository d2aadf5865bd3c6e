"""`/mcp` has one MCP server object per event loop."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cast import create_key
from tests.gateway.asgi_caller import Call

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


def test_mcp_works_in_a_second_event_loop_of_the_process(demo: None) -> None:
    """The first event loop ends without shutting its server down."""
    key = create_key("text-agent")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    headers = [
        (b"host", b"127.0.0.1"),
        (b"x-api-key", key.encode()),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-length", str(len(body)).encode()),
    ]
    calls = [asyncio.run(Call([body], headers, path="/mcp").run()) for _ in range(2)]
    assert [call.status for call in calls] == [200, 200]
