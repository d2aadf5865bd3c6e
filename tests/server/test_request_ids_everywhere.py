"""Every response, including errors, has the caller's request id and names the provider and model that answered."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.gateway.asgi_caller import Call, Loopback, chat_call, headers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

OWN = (b"x-request-id", b"my-call.1")
TOO_LONG = (b"content-length", b"99999999999")


def call(path: str, key: str = "", *extra: tuple[bytes, bytes], method: str = "GET", body: bytes = b"") -> Call:
    all_headers = [
        (name, value) for name, value in headers(key, len(body), [OWN, *extra]) if key or name != b"authorization"
    ]
    return Call([body], all_headers, method, path)


@pytest.mark.parametrize(
    ("path", "method", "extra", "status"),
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
async def test_every_response_has_the_request_id_of_its_caller(
    key: str, path: str, method: str, extra: tuple[tuple[bytes, bytes], ...], status: int
):
    answered = await call(path, key, *extra, method=method).run()
    assert (answered.status, answered.answer_headers["x-request-id"]) == (status, "my-call.1")


async def test_call_without_a_key_is_rejected_with_its_request_id(demo: None):
    answered = await call("/v1/chat/completions", method="POST", body=b"{}").run()
    assert (answered.status, answered.answer_headers["x-request-id"]) == (401, "my-call.1")
    assert json.loads(answered.answer)["error"]["request_id"] == "my-call.1"


@pytest.mark.parametrize("request_id", [b"<script>", b"a b", b"x" * 65, b""])
async def test_invalid_request_id_is_replaced(key: str, request_id: bytes):
    """The caller's id is copied to headers and logs, so an invalid one must not be used."""
    for path, extra in (("/v1/models", ()), ("/v1/chat/completions", (TOO_LONG,))):
        method = "POST" if extra else "GET"
        sent = Call([b""], headers(key, 0, [(b"x-request-id", request_id), *extra]), method, path)
        assert (await sent.run()).answer_headers["x-request-id"].startswith("req_")


async def test_mcp_response_has_the_request_id(key: str):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    extra = ((b"accept", b"application/json, text/event-stream"),)
    answered = await call("/mcp", key, *extra, method="POST", body=body).run()
    assert (answered.status, answered.answer_headers["x-request-id"]) == (200, "my-call.1")


async def test_call_is_logged_under_its_request_id(loopback: Loopback, key: str):
    async with loopback.serve():
        answered = await chat_call(key, "plain", OWN).run()
    assert answered.answer_headers["x-request-id"] == "my-call.1"
    assert (await asyncio.to_thread(logged, "my-call.1")).outcome == "ok"


async def test_agents_api_names_provider_and_model_in_headers(key: str):
    body = json.dumps({"prompt": "hello", "taskType": "planning"}).encode()
    sent = await call("/api/v1/llm/send", key, method="POST", body=body).run()
    response_headers = sent.answer_headers
    answer = json.loads(sent.answer)
    assert (response_headers["x-routing-provider"], response_headers["x-routing-model"]) == (
        answer["provider"],
        answer["model"],
    )
    assert int(response_headers["x-routing-attempts"]) == len(answer["attempts"])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/v1/llm/send"])
async def test_repeated_request_id_gets_a_suffix(loopback: Loopback, key: str, path: str):
    chat = {"model": "plain/bench", "messages": [{"role": "user", "content": "hi"}]}
    body = json.dumps(chat if path.startswith("/v1") else {"prompt": "hi", "taskType": "planning"}).encode()
    async with loopback.serve():
        calls = [await call(path, key, method="POST", body=body).run() for _ in range(3)]
    ids = [sent.answer_headers["x-request-id"] for sent in calls]
    assert ids[0] == "my-call.1"
    assert len(set(ids)) == 3
    for request_id in ids:
        assert request_id.startswith("my-call.1")
        assert (await asyncio.to_thread(logged, request_id)).outcome == "ok"
    assert (await call("/v1/models", key).run()).answer_headers["x-request-id"] == "my-call.1"


async def test_error_response_has_the_request_id_of_its_log_entry(loopback: Loopback, key: str):
    body = json.dumps({"model": "nothing-of-that-name", "messages": [{"role": "user", "content": "hi"}]}).encode()
    calls = [await call("/v1/chat/completions", key, method="POST", body=body).run() for _ in range(2)]
    for sent in calls:
        request_id = sent.answer_headers["x-request-id"]
        assert json.loads(sent.answer)["error"]["request_id"] == request_id
        assert (await asyncio.to_thread(logged, request_id)).outcome == "model_not_found"
