"""An unauthenticated caller may only send a small body: enough for a form, or for a request that is then rejected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from routing_admin.asgi import application
from routing_admin.configuration import snapshot
from routing_admin.platform.auth.admin_tokens import BAD_TOKEN, NO_TOKEN, authenticate_token
from routing_admin.platform.auth.known_callers import UNKNOWN_BYTES, is_known_caller
from routing_admin.platform.databases.lock_timeout import lock_timeout
from tests.cast import create_token, open_browser
from tests.gateway.plane import unreadable_tables

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)

BLOCK = b" " * (UNKNOWN_BYTES // 4)
CHAT = "/v1/chat/completions"


async def send(path: str, headers: Mapping[str, str], blocks: int = 400) -> tuple[int, Any, int]:
    """Send a POST body in blocks. Return the status, the response body and the number of blocks that the server
    read.
    """
    sent: list[Any] = []
    read_blocks = 0

    async def receive() -> dict[str, Any]:
        nonlocal read_blocks
        if read_blocks == blocks:
            await asyncio.Event().wait()
        read_blocks += 1
        return {"type": "http.request", "body": BLOCK, "more_body": read_blocks < blocks}

    async def note(message: Any) -> None:
        sent.append(message)

    fields = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1", **headers}.items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": fields, "client": None}
    await application({**scope, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80)}, receive, note)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent), read_blocks


UNAUTHENTICATED = ({}, {"authorization": "Bearer ra_wrong"}, {"x-api-key": "sk-1"}, {"cookie": "sid=x"})


async def test_large_body_of_an_unauthenticated_caller_returns_413_on_every_page(demo: None) -> None:
    for path, headers in product(("/login/", "/artifacts/", "/nowhere"), UNAUTHENTICATED):
        status, body, read_blocks = await send(path, headers)
        assert (path, status, read_blocks) == (path, 413, 5)
        assert json.loads(body)["limit"] == UNKNOWN_BYTES


async def test_large_body_without_a_valid_key_returns_401_in_every_api(demo: None) -> None:
    for path, headers in product((CHAT, "/v1/files", "/api/v1/artifacts", "/api/v1/messages/route"), UNAUTHENTICATED):
        status, body, read_blocks = await send(path, headers)
        error = json.loads(body)["error"]
        assert (path, status, read_blocks) == (path, 401, 5)
        assert error == "key_invalid" if path.startswith("/api/") else error["code"] == "invalid_api_key"


async def test_large_declared_length_is_rejected_before_the_body_is_read(demo: None) -> None:
    length = {"content-length": str(100 * len(BLOCK))}
    for path, headers in product((CHAT, "/v1/files", "/api/v1/artifacts", "/mcp", "/login/"), UNAUTHENTICATED):
        status, _, read_blocks = await send(path, {**headers, **length})
        assert (path, status, read_blocks) == (path, 413 if path == "/login/" else 401, 0)
    for path in (CHAT, "/v1/files", "/api/v1/artifacts", "/mcp", "/login/"):
        status, _, read_blocks = await send(path, {"content-length": str(1 << 40)})
        assert (path, status, read_blocks) == (path, 413, 0)


async def test_body_with_a_valid_key_is_read_completely(key: str) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for path in (CHAT, "/v1/files", "/api/v1/artifacts"):
        status, _, read_blocks = await send(path, headers, 20)
        assert read_blocks == 20
        assert status not in (200, 401, 413)


async def test_small_bodies_of_unauthenticated_callers_are_read(demo: None) -> None:
    assert (await send("/login/", {}, 4))[0] != 413
    assert (await send(CHAT, {}, 4))[0] == 401


def test_session_cookie_authenticates_a_caller_until_sign_out(admin_account: Any, anonymous: Client) -> None:
    client = open_browser(admin_account)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"cookie": f"theme=dark; {settings.SESSION_COOKIE_NAME}={cookie}"}
    assert is_known(headers)
    client.logout()
    assert not is_known(headers)


def test_api_token_authenticates_a_caller(admin_account: Any) -> None:
    """An administrator's script is recognized by its token. An agent's key is not accepted in place of such a token."""
    assert is_known({"authorization": f"Bearer {create_token(admin_account)}"})
    assert not is_known({"authorization": "Bearer rat_wrong"})
    assert authenticate_token({"authorization": "Bearer rat_wrong"}) is BAD_TOKEN
    for headers in ({}, {"authorization": "Bearer ra_wrong"}):
        assert authenticate_token(headers) is NO_TOKEN


def test_caller_without_a_session_is_unauthenticated() -> None:
    for cookie in ("", "theme=dark", f"{settings.SESSION_COOKIE_NAME}=", f"{settings.SESSION_COOKIE_NAME}=x"):
        assert not is_known({"cookie": cookie})
    assert not is_known({})


def test_every_caller_counts_as_authenticated_during_a_database_outage(key: str) -> None:
    """If the caller were rejected as unknown, the response would not mention the database outage."""
    snapshot.current()
    with lock_timeout(0), unreadable_tables("capabilities_agentkey"):
        assert is_known({"authorization": f"Bearer {key}"})


def is_known(headers: Mapping[str, str]) -> bool:
    from asgiref.sync import async_to_sync

    return bool(async_to_sync(is_known_caller)(headers))
