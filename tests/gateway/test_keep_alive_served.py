"""Keep-alive comments over real sockets. The official clients ignore them and raise errors for later failures."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.serving import Server, served

HELLO: Any = [{"role": "user", "content": "hello"}]
MESSAGE: Any = {"model": "task:chain", "max_tokens": 50, "messages": HELLO}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("keep-alive"), settings={"KEEP_ALIVE_SECONDS": "0.01"}) as server:
        yield server


@pytest.fixture
def gate(server: Server) -> Iterator[threading.Event]:
    """Block every provider until the event is set. If a client gets headers before that, its stream began early."""
    opened = threading.Event()
    server.lab.on_request = lambda _: opened.wait(60) and None
    yield opened
    opened.set()
    server.lab.on_request = None


@pytest.mark.parametrize(
    ("path", "provider", "step"),
    [
        ("/v1/chat/completions", "one", "silent"),
        ("/v1/messages", "by-anthropic", "stall_first"),
        ("/v1/responses", "by-openai-responses", "comments_forever"),
    ],
)
def test_disconnect_during_keep_alive_closes_the_upstream_within_a_second(server, client, path, provider, step):
    server.lab.play({})
    body = {"model": f"{provider}/fault:{step}", "stream": True, "max_tokens": 9, "messages": HELLO, "input": "hello"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", path, json.dumps(body), {"authorization": f"Bearer {server.key}"})
    response = connection.getresponse()
    assert response.readline().startswith((b": keep-alive", b"event: ping"))
    request_id = response.headers["x-request-id"]
    assert server.lab.wait_until(lambda: bool(server.lab.requests))
    disconnected_at = time.monotonic()
    response.close()
    connection.close()
    (received,) = server.lab.requests
    assert server.lab.wait_until(lambda: received.closed_at is not None, 5)
    assert received.closed_at - disconnected_at < 1
    logged = server.timeline(request_id)
    assert (logged["outcome"], logged["status"]) == ("client_cancelled", 499)
    assert [attempt["outcome"] for attempt in logged["attempts"]] == ["client_cancelled"]
    answer = client.chat.completions.create(model=f"{provider}/fault:ok", messages=HELLO)
    assert answer.choices[0].message.content == "You said: hello"


SECOND_ANSWERS = {"one": "http_503", "two": "say:from two"}
NO_ANSWER = {"one": "http_503", "two": "http_503", "three": "http_503"}


def test_openai_client_reads_a_chat_stream_that_began_early(server, gate, client):
    server.lab.play(SECOND_ANSWERS)
    stream = client.chat.completions.create(model="task:chain", messages=HELLO, stream=True)
    headers = stream.response.headers
    gate.set()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "from two"
    assert "x-routing-provider" not in headers
    logged = server.timeline(headers["x-request-id"])
    assert (logged["outcome"], logged["status"], len(logged["attempts"])) == ("ok", 200, 2)
    assert logged["answer"]["keepAliveMs"] > 0


def test_openai_client_reads_a_responses_stream_that_began_early(server, gate, client):
    server.lab.play(SECOND_ANSWERS)
    stream = client.responses.create(model="task:chain", input="hello", stream=True)
    gate.set()
    last: Any = list(stream)[-1]
    assert (last.type, last.response.output_text) == ("response.completed", "from two")


def test_anthropic_client_reads_a_message_stream_that_began_early(server, gate, claude):
    server.lab.play(SECOND_ANSWERS)
    stream = claude.messages.create(**MESSAGE, stream=True)
    gate.set()
    events = list(stream)
    assert events[0].type == "message_start"
    assert "".join(event.delta.text for event in events if event.type == "content_block_delta") == "from two"


def test_official_clients_raise_errors_after_keep_alive_comments(server, gate, client, claude):
    """The clients raise their vendor's own error for an error event.

    A Responses stream ends with `response.failed`, as OpenAI's own streams do.
    """
    server.lab.play(NO_ANSWER)
    chat = client.chat.completions.create(model="task:chain", messages=HELLO, stream=True)
    response = client.responses.create(model="task:chain", input="hello", stream=True)
    message = claude.messages.create(**MESSAGE, stream=True)
    gate.set()
    with pytest.raises(openai.APIError, match="candidates failed") as raised:
        list(chat)
    assert raised.value.code == "all_providers_failed"
    last: Any = list(response)[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "server_error")
    with pytest.raises(anthropic.APIStatusError, match="candidates failed"):
        list(message)
