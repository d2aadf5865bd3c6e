"""Lone surrogates in a provider's text never make a response fail in any API, complete or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from capabilities.core.surrogates import repair
from tests.chaos.callers import ask
from tests.gateway.serving import Server, served
from tests.gateway.stream_readers import ParsedAnswer, read_chat, read_messages, read_responses

pytestmark = pytest.mark.usefixtures("reset_lab")

# A surrogate pair arrives as one character, a lone surrogate as U+FFFD.
CALLED = ("call\ufffd", "f\ufffd", {"x": "\U0001f600", "y": "\ufffd"})
TEXT, THOUGHT = "So \U0001f600 \ufffd", "hm\ufffd"
HELLO = [{"role": "user", "content": "hello"}]
APIS: Mapping[str, tuple[dict[str, Any], Callable[[bytes], ParsedAnswer]]] = {
    "/v1/chat/completions": ({"messages": HELLO}, read_chat),
    "/v1/messages": ({"messages": HELLO, "max_tokens": 2000, "thinking": {"type": "adaptive"}}, read_messages),
    "/v1/responses": ({"input": "hello"}, read_responses),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("halves")) as server:
        yield server


def build_body(path: str, provider: str, *, stream: bool) -> dict[str, Any]:
    return {**APIS[path][0], "model": f"{provider}/fault:recorded:name=halves", "stream": stream}


EACH_PROVIDER = pytest.mark.parametrize("provider", ["one", "by-openai-responses", "by-anthropic", "by-gemini"])


@EACH_PROVIDER
@pytest.mark.parametrize("path", APIS)
def test_lone_surrogates_in_a_stream_are_joined_or_replaced(server: Server, path: str, provider: str) -> None:
    reply = ask(server, "POST", path, build_body(path, provider, stream=True))
    text, thought, calls = APIS[path][1](reply.body)
    assert (text, thought, repair(calls)) == (TEXT, THOUGHT, [CALLED])
    assert server.timeline(reply.headers["x-request-id"])["outcome"] == "ok"


@EACH_PROVIDER
@pytest.mark.parametrize("path", APIS)
def test_lone_surrogates_in_a_complete_answer_are_joined_or_replaced(server: Server, path: str, provider: str) -> None:
    reply = ask(server, "POST", path, build_body(path, provider, stream=False))
    texts = [*texts_in(reply.json)]
    for text in (TEXT, THOUGHT, *CALLED[:2]):
        assert text in texts, text
    assert server.timeline(reply.headers["x-request-id"])["outcome"] == "ok"


@pytest.mark.parametrize("path", APIS)
def test_lone_surrogates_in_an_error_are_replaced(server: Server, path: str) -> None:
    server.lab.play({"one": "http_400:message=no \ud83d here"})
    reply = ask(server, "POST", path, {**APIS[path][0], "model": "one/lab"})
    assert reply.status == 400
    assert "no \ufffd here" in reply.json["error"]["message"]


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)
