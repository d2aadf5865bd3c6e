"""`item_reference` and `previous_response_id` with OpenAI's client over real sockets and two workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.serving import Server, served
from tests.gateway.test_responses_served import TOOL, UPSTREAMS
from tests.processes import NO_CERTIFICATES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("references"), options=("--workers", "2")) as server:
        yield server


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
    for by in ("reference", "previous") * 3:
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
