"""An unauthenticated caller can send only a small body, enough for a form or a rejected request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from routing_admin.asgi import application
from routing_admin.configuration import snapshot
from routing_admin.platform.auth.known_callers import UNKNOWN_BYTES, is_known_caller
from routing_admin.platform.databases.lock_timeout import lock_timeout
from tests.cast import browser_of
from tests.gateway.plane import without

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)

BLOCK = b" " * (UNKNOWN_BYTES // 4)
CHAT = "/v1/chat/completions"


async def send(path: str, headers: Mapping[str, str], blocks: int = 400) -> tuple[int, Any, int]:
    """Send a POST in blocks; return the status, the body and the number of blocks that were read."""
    sent: list[Any] = []
    taken = 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        if taken == blocks:
            await asyncio.Event().wait()
        taken += 1
        return {"type": "http.request", "body": BLOCK, "more_body": taken < blocks}

    async def note(message: Any) -> None:
        sent.append(message)

    fields = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1", **headers}.items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": fields, "client": None}
    await application({**scope, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80)}, receive, note)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent), taken


STRANGERS = ({}, {"authorization": "Bearer ra_wrong"}, {"x-api-key": "sk-1"}, {"cookie": "sid=x"})


async def test_a_stranger_is_cut_off_on_every_page(demo: None) -> None:
    """A page rejects a body of more than 64 KiB from an unauthenticated caller with 413 and reads no more."""
    for path, headers in product(("/login/", "/artifacts/", "/nowhere"), STRANGERS):
        status, body, taken = await send(path, headers)
        assert (path, status, taken) == (path, 413, 5)
        assert json.loads(body)["limit"] == UNKNOWN_BYTES


async def test_a_call_without_a_good_key_is_cut_off_too(demo: None) -> None:
    """An API answers a large body without a valid key with 401, as it does for a small one."""
    for path, headers in product((CHAT, "/v1/files", "/api/v1/artifacts", "/api/v1/messages/route"), STRANGERS):
        status, body, taken = await send(path, headers)
        error = json.loads(body)["error"]
        assert (path, status, taken) == (path, 401, 5)
        assert error == "key_invalid" if path.startswith("/api/") else error["code"] == "invalid_api_key"


async def test_a_stranger_is_refused_by_what_is_announced(demo: None) -> None:
    """A large declared length is rejected before the body is read: 401, on pages 413, above every limit 413."""
    length = {"content-length": str(100 * len(BLOCK))}
    for path, headers in product((CHAT, "/v1/files", "/api/v1/artifacts", "/mcp", "/login/"), STRANGERS):
        status, _, taken = await send(path, {**headers, **length})
        assert (path, status, taken) == (path, 413 if path == "/login/" else 401, 0)
    for path in (CHAT, "/v1/files", "/api/v1/artifacts", "/mcp", "/login/"):
        status, _, taken = await send(path, {"content-length": str(1 << 40)})
        assert (path, status, taken) == (path, 413, 0)


async def test_a_good_key_may_send_what_its_address_takes(key: str) -> None:
    """A body with a valid key is read whole."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for path in (CHAT, "/v1/files", "/api/v1/artifacts"):
        status, _, taken = await send(path, headers, 20)
        assert taken == 20
        assert status not in (200, 401, 413)


async def test_small_bodies_of_strangers_are_served(demo: None) -> None:
    """Small bodies without a valid key are read: a sign-in form, and a request that gets 401."""
    assert (await send("/login/", {}, 4))[0] != 413
    assert (await send(CHAT, {}, 4))[0] == 401


def test_who_is_signed_in_is_known_and_who_signed_out_is_not(admin_account: Any, anonymous: Client) -> None:
    """A session cookie makes a caller known until the sign-out."""
    client = browser_of(admin_account)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"cookie": f"theme=dark; {settings.SESSION_COOKIE_NAME}={cookie}"}
    assert run(headers)
    client.logout()
    assert not run(headers)


def test_while_nobody_can_look_nobody_is_called_a_stranger(key: str) -> None:
    """A caller counts as known while the database is unavailable; the request then reports the outage."""
    snapshot.current()
    with lock_timeout(0), without("capabilities_agentkey"):
        assert run({"authorization": f"Bearer {key}"})
    assert connection.vendor == "sqlite"


def run(headers: Mapping[str, str]) -> bool:
    from asgiref.sync import async_to_sync

    return bool(async_to_sync(is_known_caller)(headers))
