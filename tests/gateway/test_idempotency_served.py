"""`Idempotency-Key` with the official clients over real sockets, several processes and a restart."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from tests.engines.others import LOG, locked
from tests.gateway.serving import Server, environment_of, listening, served

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("idempotency"), options=("--workers", "2")) as server:
        yield server


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    server.lab.play({})
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0)


def once(word: str) -> dict[str, Any]:
    return {"extra_headers": {"Idempotency-Key": word}}


def test_openais_client_pays_once(client: openai.OpenAI, server: Server) -> None:
    """Whichever worker takes the repeated call, the provider receives one request, whole or streamed."""
    whole = [client.chat.completions.create(model="one/lab", messages=HELLO, **once("whole")) for _ in range(6)]
    assert len({each.id for each in whole}) == 1
    pieces = [
        [
            each.model_dump()
            for each in client.responses.create(model="one/lab", input="hello", stream=True, **once("s"))
        ]
        for _ in range(6)
    ]
    assert pieces[0][-1]["type"] == "response.completed"
    assert all(each == pieces[0] for each in pieces)
    assert len(server.lab.requests) == 2


def test_a_client_that_comes_too_early_gets_the_answer_by_itself(client: openai.OpenAI, server: Server) -> None:
    """A repeated call during the first is a 409 with Retry-After, which the official client obeys; the provider
    receives one request.
    """
    server.lab.play({"one": "delay:seconds=0.5"})
    patient = client.with_options(max_retries=8)
    with ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(patient.chat.completions.create, model="one/lab", messages=HELLO, **once("early"))
            for _ in range(4)
        ]
        assert len({each.result().id for each in asked}) == 1
    assert len(server.lab.requests) == 1


def test_anthropics_client_pays_once(server: Server) -> None:
    """A reused key with another body raises the client's own error."""
    server.lab.play({})
    client = anthropic.Anthropic(api_key=server.key, base_url=server.url, max_retries=0)
    asked: Any = {"model": "by-anthropic/lab", "max_tokens": 50, "messages": HELLO}
    assert client.messages.create(**asked, **once("m")).id == client.messages.create(**asked, **once("m")).id
    with pytest.raises(anthropic.UnprocessableEntityError, match="was used for a different request"):
        client.messages.create(**{**asked, "max_tokens": 51}, **once("m"))
    assert len(server.lab.requests) == 1


def test_a_stream_that_broke_off_is_not_stored(client: openai.OpenAI, server: Server) -> None:
    """A call with the key of a broken stream is made again once the key is released."""
    server.lab.play({"one": ["error_event_mid", "ok"]})
    asked: Any = {"model": "one/lab", "messages": HELLO, "stream": True, **once("broken")}
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**asked))
    # 409 until the key is released.
    again = client.with_options(max_retries=8).chat.completions.create(**asked)
    assert [each.choices[0].finish_reason for each in again][-1] == "stop"


def test_while_the_log_is_locked_only_calls_with_a_key_are_503(client: openai.OpenAI, server: Server) -> None:
    """While stored outcomes cannot be read, a call with a key is a 503 with Retry-After; other calls are served."""
    asked: Any = {"model": "one/lab", "messages": HELLO}
    with locked(server.directory / LOG):
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(**asked, **once("locked"))
        assert client.chat.completions.create(**asked).choices
    headers = refused.value.response.headers
    assert (refused.value.status_code, headers["x-should-retry"], headers["retry-after"]) == (503, "true", "2")
    assert client.chat.completions.create(**asked, **once("locked")).choices


def test_a_restart_forgets_nothing(client: openai.OpenAI, server: Server) -> None:
    """Outcomes are in the database, so they survive a restart."""
    first = client.chat.completions.create(model="one/lab", messages=HELLO, **once("kept"))
    server.process.terminate()
    server.process.wait(timeout=40)
    environment = environment_of(server.directory, server.lab)
    again = listening(environment, server.key, server.lab, server.directory)
    try:
        moved = client.with_options(base_url=again.url + "/v1")
        assert moved.chat.completions.create(model="one/lab", messages=HELLO, **once("kept")).id == first.id
    finally:
        again.process.terminate()
        again.process.wait(timeout=40)
    assert len(server.lab.requests) == 1
