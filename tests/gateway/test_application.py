"""The ASGI application of /v1 with unusual lengths, headers, hosts and methods."""

from __future__ import annotations

import asyncio
import json

import pytest

from capabilities.json_bodies import body_limit, received_limit
from tests.gateway.asgi_caller import PATH, Call, Loopback, chat_call, headers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


async def run_with_providers(loopback: Loopback, call: Call) -> Call:
    async with loopback.serve():
        return await call.run()


@pytest.mark.parametrize("pieces", [1, 2, 4, 41])
async def test_body_may_arrive_in_any_number_of_pieces(key, loopback, pieces):
    call = await run_with_providers(loopback, chat_call(key, "plain", pieces=pieces))
    assert (call.status, len(call.pieces)) == (200, pieces)
    assert json.loads(call.answer)["choices"][0]["message"]["content"] == "Hello from the bench."
    assert call.answer_headers["content-length"] == str(len(call.answer))
    assert call.answer_headers["content-type"] == "application/json"
    assert call.answer_headers["x-content-type-options"] == "nosniff"


async def test_body_may_have_empty_pieces(key, loopback):
    """A server that learns late that a body has ended sends an empty last chunk."""
    call = chat_call(key, "plain")
    call.pieces = [b"", *call.pieces, b"", b""]
    assert (await run_with_providers(loopback, call)).status == 200


# The last value is a superscript two, which `str.isdigit` accepts.
@pytest.mark.parametrize("length", [b"1", b"0", b"99999", b"-5", b"many", b"", b"1" * 30, b"\xb2"])
async def test_wrong_content_length_is_ignored_below_the_limit(key, loopback, length):
    """What counts is the number of received bytes, not the Content-Length."""
    assert (await run_with_providers(loopback, chat_call(key, "plain", (b"content-length", length)))).status == 200


async def test_body_with_a_content_length_over_the_limit_is_not_read(key):
    call = chat_call(key, "plain", (b"content-length", str(received_limit(PATH) + 1).encode()))
    await call.run()
    assert (call.status, call.error_code, call.received) == (413, "too_large", 0)
    assert call.answer_headers["connection"] == "close"


async def test_reading_stops_when_the_body_exceeds_the_limit(key):
    block = b" " * (8 * 1024 * 1024)
    needed = received_limit(PATH) // len(block) + 1
    call = Call([block] * (needed + 5), headers(key, 5))
    await call.run()
    assert (call.status, call.error_code, call.received) == (413, "too_large", needed)


async def test_body_slightly_over_the_limit_is_refused_with_the_calls_own_error(key, loopback):
    """A call must be able to refuse the body with its own error, so the body is read to its end."""
    call = await run_with_providers(loopback, Call([b" " * (body_limit(PATH) + 1)], headers(key, 5)))
    assert (call.status, call.error_code) == (413, "body_too_large")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "post"])
async def test_wrong_method_is_405_with_an_allow_header(method):
    call = await Call([b""], headers("none", 0), method=method).run()
    assert (call.status, call.error_code) == (405, "method_not_allowed")
    assert call.answer_headers["allow"] == "POST"
    assert call.answer_headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1", 200),
        (b"127.0.0.1:8000", 200),
        (b"LOCALHOST", 200),
        (b"evil.example", 400),
        (b"127.0.0.1.evil.example", 400),
        (b"127.0.0.1@evil.example", 400),
        (b"", 400),
        (b"\xff", 400),
    ],
)
async def test_only_known_hosts_are_accepted(key, loopback, host, status):
    call = await run_with_providers(loopback, chat_call(key, "plain", (b"host", host)))
    assert call.status == status
    assert status == 200 or call.error_code == "host_not_allowed"


async def test_two_host_headers_are_refused(key, loopback):
    call = await run_with_providers(
        loopback, chat_call(key, "plain", (b"host", b"127.0.0.1"), (b"host", b"evil.example"))
    )
    assert (call.status, call.error_code) == (400, "host_not_allowed")


@pytest.mark.parametrize("name", [b"authorization", b"Authorization", b"AUTHORIZATION"])
async def test_header_names_are_case_insensitive(key, loopback, name):
    """ASGI servers send header names in lower case, but the application does not rely on it."""
    call = await run_with_providers(loopback, chat_call(key, "plain", (name, f"Bearer {key}".encode())))
    assert call.status == 200


async def test_two_authorization_headers_are_refused(key, loopback):
    good = (b"authorization", f"Bearer {key}".encode())
    assert (
        await run_with_providers(loopback, chat_call(key, "plain", good, (b"authorization", b"Bearer x")))
    ).status == 401


async def test_repeated_irrelevant_header_is_accepted(key, loopback):
    assert (
        await run_with_providers(loopback, chat_call(key, "plain", (b"accept", b"a"), (b"accept", b"b")))
    ).status == 200


@pytest.mark.parametrize("request_id", ["my-call.1", "A" * 64])
async def test_request_id_of_the_caller_is_kept(key, loopback, request_id):
    call = await run_with_providers(loopback, chat_call(key, "plain", (b"x-request-id", request_id.encode())))
    assert call.answer_headers["x-request-id"] == request_id
    assert await logged_outcome(request_id) == "ok"


@pytest.mark.parametrize("request_ids", [[], [b""], [b"two words"], [b"A" * 65], [b"\xe4"], [b"one", b"two"]])
async def test_request_without_a_valid_request_id_gets_a_new_id(key, loopback, request_ids):
    call = await run_with_providers(
        loopback, chat_call(key, "plain", *((b"x-request-id", value) for value in request_ids))
    )
    request_id = call.answer_headers["x-request-id"]
    assert request_id.startswith("req_")
    assert await logged_outcome(request_id) == "ok"


async def test_refusal_has_its_request_id_in_header_and_body(loopback):
    call = await run_with_providers(loopback, chat_call("wrong", "plain", (b"x-request-id", b"refused-1")))
    assert call.status == 401
    assert call.answer_headers["x-request-id"] == "refused-1"
    assert json.loads(call.answer)["error"]["request_id"] == "refused-1"


async def test_stream_has_the_event_stream_content_type_and_no_content_length(key, loopback):
    call = await run_with_providers(loopback, chat_call(key, "stream", stream=True))
    assert call.answer_headers["content-type"] == "text/event-stream"
    assert "content-length" not in call.answer_headers
    assert call.answer.endswith(b"data: [DONE]\n\n")
    assert call.sent[-1] == {"type": "http.response.body", "body": b""}


async def logged_outcome(request_id: str) -> str:
    return str((await asyncio.to_thread(logged, request_id)).outcome)
