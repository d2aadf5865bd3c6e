"""An error in the gateway's own code is reported in the API's format and logged as an internal error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from capabilities.core.protocols.openai import stream as openai_stream
from capabilities.core.wire import Delta
from routing_admin.gateway.chat import rendering
from routing_admin.upstream import calls
from tests.gateway.asgi_caller import Loopback, chat_call
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ID = (b"x-request-id", b"the-call")


class UnforeseenError(Exception):
    pass


def fail(*_: Any, **__: Any) -> Any:
    raise UnforeseenError


async def play(key: str, loopback: Loopback, provider: str, *, stream: bool) -> tuple[int, bytes, str, list[str]]:
    call = chat_call(key, provider, ID, stream=stream)
    async with loopback.serve():
        await call.run()

    def read() -> tuple[str, list[str]]:
        row = logged("the-call")
        return row.outcome, [attempt.outcome for attempt in row.attempts.all()]

    return (call.status, call.answer, *await asyncio.to_thread(read))


async def test_exception_during_a_stream_is_sent_as_a_final_internal_error_event(key, loopback, monkeypatch):
    write, written = rendering.Chunks.write_delta, list[Delta]()

    def break_later(events: rendering.Chunks, delta: Delta) -> bytes:
        written.append(delta)
        return write(events, delta) if len(written) < 3 else fail()

    monkeypatch.setattr(rendering.Chunks, "write_delta", break_later)
    status, body, outcome, attempts = await play(key, loopback, "stream", stream=True)
    last = json.loads(body.strip().split(b"\n\n")[-1].removeprefix(b"data: "))
    assert (status, last["error"]["code"]) == (200, "internal_error")
    assert b"[DONE]" not in body
    assert (outcome, attempts) == ("internal_error", ["ok"])


async def test_answer_that_cannot_be_encoded_returns_a_logged_500(key, loopback, monkeypatch):
    monkeypatch.setattr(rendering, "usage_json", fail)
    status, body, outcome, _ = await play(key, loopback, "plain", stream=False)
    assert (status, json.loads(body)["error"]["code"], outcome) == (500, "internal_error", "internal_error")


@pytest.mark.parametrize("stream", [False, True])
async def test_candidate_with_an_undecodable_answer_fails(key, loopback, monkeypatch, caplog, stream):
    monkeypatch.setattr(openai_stream.ChunkReader, "read", fail)
    monkeypatch.setattr(calls, "repair_outcome", fail)
    status, body, _, attempts = await play(key, loopback, "stream" if stream else "plain", stream=stream)
    assert (status, json.loads(body)["error"]["code"], attempts) == (502, "all_providers_failed", ["bad_shape"])
    assert "UnforeseenError" in body.decode()
    assert "Traceback" in caplog.text
