"""Answers that one process stored are found by another, over real sockets with the official clients.

Callers refer to them by `Idempotency-Key`, which also works after a restart, `item_reference` and
`previous_response_id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from tests.engines.others import LOG, locked
from tests.gateway.serving import Server, listening, served, server_environment
from tests.gateway.test_responses_served import TOOL, UPSTREAMS
from tests.processes import NO_CERTIFICATES

pytestmark = pytest.mark.usefixtures("reset_lab")

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("stored"), options=("--workers", "2")) as server:
        yield server


def with_key(key: str) -> dict[str, Any]:
    return {"extra_headers": {"Idempotency-Key": key}}


def test_repeated_calls_of_openais_client_make_one_request(client: openai.OpenAI, server: Server) -> None:
    whole = [client.chat.completions.create(model="one/lab", messages=HELLO, **with_key("whole")) for _ in range(4)]
    assert len({answer.id for answer in whole}) == 1
    streams = [
        [
            event.model_dump()
            for event in client.responses.create(model="one/lab", input="hello", stream=True, **with_key("s"))
        ]
        for _ in range(4)
    ]
    assert streams[0][-1]["type"] == "response.completed"
    assert all(events == streams[0] for events in streams)
    assert len(server.lab.requests) == 2


def test_client_that_repeats_a_running_call_retries_until_the_answer_is_stored(
    client: openai.OpenAI, server: Server
) -> None:
    """A call repeated while the first one is running gets a 409 with Retry-After, which the official client obeys.

    The provider receives only one request.
    """
    server.lab.play({"one": "delay:seconds=0.5"})
    patient = client.with_options(max_retries=8)
    with ThreadPoolExecutor(4) as threads:
        calls = [
            threads.submit(patient.chat.completions.create, model="one/lab", messages=HELLO, **with_key("early"))
            for _ in range(4)
        ]
        assert len({call.result().id for call in calls}) == 1
    assert len(server.lab.requests) == 1


def test_repeated_calls_of_anthropics_client_make_one_request(claude: anthropic.Anthropic, server: Server) -> None:
    body: Any = {"model": "by-anthropic/lab", "max_tokens": 50, "messages": HELLO}
    assert claude.messages.create(**body, **with_key("m")).id == claude.messages.create(**body, **with_key("m")).id
    with pytest.raises(anthropic.UnprocessableEntityError, match="was used for a different request"):
        claude.messages.create(**{**body, "max_tokens": 51}, **with_key("m"))
    assert len(server.lab.requests) == 1


def test_broken_stream_is_not_stored(client: openai.OpenAI, server: Server) -> None:
    server.lab.play({"one": ["error_event_mid", "ok"]})
    body: Any = {"model": "one/lab", "messages": HELLO, "stream": True, **with_key("broken")}
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**body))
    # The status is 409 until the first call releases the idempotency key.
    again = client.with_options(max_retries=8).chat.completions.create(**body)
    assert [chunk.choices[0].finish_reason for chunk in again][-1] == "stop"


def test_only_calls_with_an_idempotency_key_are_503_while_the_log_is_locked(
    client: openai.OpenAI, server: Server
) -> None:
    body: Any = {"model": "one/lab", "messages": HELLO}
    with locked(server.directory / LOG):
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(**body, **with_key("locked"))
        assert client.chat.completions.create(**body).choices
    headers = refused.value.response.headers
    assert (refused.value.status_code, headers["x-should-retry"], headers["retry-after"]) == (503, "true", "2")
    assert client.chat.completions.create(**body, **with_key("locked")).choices


def local_client(server: Server) -> openai.OpenAI:
    local = openai.DefaultHttpxClient(verify=NO_CERTIFICATES)
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0, http_client=local)


def conversation(server: Server, upstream: str, *, streamed: bool, by: str = "") -> Any:
    """Hold a conversation with one tool round, and return the second request that the provider receives.

    The second call uses a new connection.
    """
    server.lab.play({})
    options: dict[str, Any] = {"model": f"{upstream}/fault:capable", "tools": [TOOL], "reasoning": {"effort": "low"}}
    first = [{"role": "user", "content": "double 4"}]
    with local_client(server) as client:
        if streamed:
            with client.responses.stream(**options, input=first) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**options, input=first)
    dumped = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    items = [{"type": "item_reference", "id": item.id} for item in answer.output] if by == "reference" else dumped
    call = next(item for item in answer.output if item.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "8"}
    with local_client(server) as client:
        if by == "previous":
            assert client.responses.create(**options, input=[result], previous_response_id=answer.id).output_text
        else:
            assert client.responses.create(**options, input=[*first, *items, result]).output_text
    return server.lab.requests[-1].json


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("streamed", [False, True])
def test_provider_receives_referenced_items_like_items_in_the_request(
    server: Server, upstream: str, streamed: bool
) -> None:
    sent = conversation(server, upstream, streamed=streamed)
    for by in ("reference", "previous"):
        assert without_ids(conversation(server, upstream, streamed=streamed, by=by)) == without_ids(sent)


def without_ids(value: Any) -> Any:
    """Return the request without the fault lab's call ids and without Gemini's call signatures.

    The lab generates call ids for each answer. No item contains the signatures, so only the worker that received them
    knows them.
    """
    if isinstance(value, dict):
        return {
            name: without_ids(item) for name, item in value.items() if not name.endswith(("id", "thoughtSignature"))
        }
    return [without_ids(item) for item in value] if isinstance(value, list) else value


def test_outcomes_survive_a_restart(client: openai.OpenAI, server: Server) -> None:
    first = client.chat.completions.create(model="one/lab", messages=HELLO, **with_key("kept"))
    server.process.terminate()
    server.process.wait(timeout=40)
    environment = server_environment(server.directory, server.lab)
    restarted = listening(environment, server.key, server.lab, server.directory)
    try:
        second_client = client.with_options(base_url=restarted.url + "/v1")
        assert second_client.chat.completions.create(model="one/lab", messages=HELLO, **with_key("kept")).id == first.id
    finally:
        restarted.process.terminate()
        restarted.process.wait(timeout=40)
    assert len(server.lab.requests) == 1
