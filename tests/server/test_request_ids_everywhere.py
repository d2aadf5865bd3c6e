"""Every response has the caller's request id, also an error, and names provider and model if one answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.gateway.asgi_caller import Call, Loopback, chat_call, headers, loopback_providers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

OWN = (b"x-request-id", b"my-call.1")
TOO_LONG = (b"content-length", b"99999999999")


@pytest.fixture
def loopback(demo: None) -> Iterator[Loopback]:
    with loopback_providers() as providers:
        yield providers


def call(path: str, key: str = "", *more: tuple[bytes, bytes], method: str = "GET", body: bytes = b"") -> Call:
    known = [(name, value) for name, value in headers(key, len(body), [OWN, *more]) if key or name != b"authorization"]
    return Call([body], known, method, path)


@pytest.mark.parametrize(
    ("path", "method", "more", "status"),
    [
        ("/login/", "GET", (), 200),
        ("/no-such-page", "GET", (), 404),
        ("/healthz", "GET", (), 200),
        ("/api/v1/requests/none", "GET", (), 404),
        ("/api/v1/no-such-call", "GET", (), 404),
        ("/v1/models", "GET", (), 200),
        ("/v1/no-such-call", "POST", (), 404),
        ("/v1/chat/completions", "GET", (), 405),
        ("/v1/chat/completions", "POST", (TOO_LONG,), 413),
        ("/v1/messages", "POST", (TOO_LONG,), 413),
        ("/api/v1/llm/send", "POST", (TOO_LONG,), 413),
        ("/mcp", "GET", (), 405),
    ],
)
async def test_every_surface_answers_under_the_callers_id(
    key: str, path: str, method: str, more: tuple[tuple[bytes, bytes], ...], status: int
):
    """Pages, APIs, health checks and early rejections have the caller's request id."""
    done = await call(path, key, *more, method=method).run()
    assert (done.status, done.answer_headers["x-request-id"]) == (status, "my-call.1")


async def test_a_call_without_a_key_is_refused_under_its_id(demo: None):
    """A rejected key has the caller's request id in the header and the body."""
    done = await call("/v1/chat/completions", method="POST", body=b"{}").run()
    assert (done.status, done.answer_headers["x-request-id"]) == (401, "my-call.1")
    assert json.loads(done.answer)["error"]["request_id"] == "my-call.1"


@pytest.mark.parametrize("word", [b"<script>", b"a b", b"x" * 65, b""])
async def test_what_is_no_plain_word_is_not_kept(key: str, word: bytes):
    """An invalid request id is replaced by a generated one, since it would be in headers and logs."""
    for path, more in (("/v1/models", ()), ("/v1/chat/completions", (TOO_LONG,))):
        method = "POST" if more else "GET"
        made = Call([b""], headers(key, 0, [(b"x-request-id", word), *more]), method, path)
        assert (await made.run()).answer_headers["x-request-id"].startswith("req_")


async def test_a_tool_call_is_answered_under_its_id(key: str):
    """An MCP response has the caller's request id."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    more = ((b"accept", b"application/json, text/event-stream"),)
    done = await call("/mcp", key, *more, method="POST", body=body).run()
    assert (done.status, done.answer_headers["x-request-id"]) == (200, "my-call.1")


async def test_a_call_of_a_model_is_logged_under_its_id(loopback: Loopback, key: str):
    """A call is logged under the caller's request id."""
    async with loopback.serve():
        done = await chat_call(key, "plain", OWN).run()
    assert done.answer_headers["x-request-id"] == "my-call.1"
    assert (await asyncio.to_thread(logged, "my-call.1")).outcome == "ok"


async def test_the_agents_api_says_who_answered(key: str):
    """`/api/v1` names provider, model and attempts in the same headers as `/v1`."""
    body = json.dumps({"prompt": "hello", "taskType": "planning"}).encode()
    done = await call("/api/v1/llm/send", key, method="POST", body=body).run()
    said = done.answer_headers
    answered = json.loads(done.answer)
    assert (said["x-routing-provider"], said["x-routing-model"]) == (answered["provider"], answered["model"])
    assert int(said["x-routing-attempts"]) == len(answered["attempts"])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/v1/llm/send"])
async def test_an_id_used_twice_is_another_one_the_second_time(loopback: Loopback, key: str, path: str):
    """A repeated id of a logged call gets a suffix in the response and the log."""
    asked = {"model": "plain/bench", "messages": [{"role": "user", "content": "hi"}]}
    body = json.dumps(asked if path.startswith("/v1") else {"prompt": "hi", "taskType": "planning"}).encode()
    async with loopback.serve():
        calls = [await call(path, key, method="POST", body=body).run() for _ in range(3)]
    ids = [each.answer_headers["x-request-id"] for each in calls]
    assert ids[0] == "my-call.1"
    assert len(set(ids)) == 3
    for each in ids:
        assert each.startswith("my-call.1")
        assert (await asyncio.to_thread(logged, each)).outcome == "ok"
    assert (await call("/v1/models", key).run()).answer_headers["x-request-id"] == "my-call.1"


async def test_a_refusal_of_a_logged_call_has_the_id_of_the_log(loopback: Loopback, key: str):
    """An error of a logged call has the id under which it is logged."""
    body = json.dumps({"model": "nothing-of-that-name", "messages": [{"role": "user", "content": "hi"}]}).encode()
    calls = [await call("/v1/chat/completions", key, method="POST", body=body).run() for _ in range(2)]
    for each in calls:
        made = each.answer_headers["x-request-id"]
        assert json.loads(each.answer)["error"]["request_id"] == made
        assert (await asyncio.to_thread(logged, made)).outcome == "model_not_found"
