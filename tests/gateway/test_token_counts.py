"""The provider counts the tokens of a request if its API can.

Otherwise, the count is an estimate, and a header says so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import get_type_hints

import openai
import pytest
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from openai.types.responses.input_token_count_params import InputTokenCountParams

from routing_admin.dispatch.estimates import COUNTER_RETRY_SECONDS, SilentCounters
from tests.gateway.plane import PNG
from tests.gateway.serving import Server, served

pytestmark = pytest.mark.usefixtures("reset_lab")

PICTURE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
HELLO = [{"role": "user", "content": "hello"}]
TOOL = {"name": "double", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}


ACCEPTED_FIELDS = {
    "openai-responses": set(get_type_hints(InputTokenCountParams)),
    "anthropic": set(get_type_hints(MessageCountTokensParams)),
    "gemini": {"generateContentRequest"},
}
"""The fields that each counting API accepts, taken from the vendors' clients."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("counts")) as server:
        yield server


@pytest.mark.parametrize(
    ("protocol", "end"),
    [("openai-responses", "/input_tokens"), ("anthropic", "/count_tokens"), ("gemini", ":countTokens")],
)
def test_token_counter_receives_the_same_content_as_the_call(claude, server, protocol, end):
    request_fields = {"model": f"by-{protocol}/lab", "messages": HELLO, "tools": [TOOL], "system": "Be brief."}
    raw = claude.messages.with_raw_response.count_tokens(**request_fields)
    claude.messages.create(**request_fields, max_tokens=50)
    counted, called = server.lab.requests
    assert raw.parse().input_tokens == len(counted.body)
    assert "x-routing-estimate" not in raw.headers
    assert raw.headers["x-routing-provider"] == f"by-{protocol}"
    assert counted.path.endswith(end)
    assert (counted.heard.turns, counted.heard.tools) == (called.heard.turns, called.heard.tools)
    assert set(counted.json) <= ACCEPTED_FIELDS[protocol]


def test_token_count_without_a_counter_is_an_estimate(claude, server):
    raw = claude.messages.with_raw_response.count_tokens(model="one/lab", messages=HELLO)
    assert (raw.headers["x-routing-estimate"], server.lab.requests) == ("true", [])
    assert raw.parse().input_tokens > 0


@pytest.mark.parametrize("upstream", ["by-openai-responses", "by-anthropic", "by-gemini", "one"])
def test_token_count_of_the_responses_api_has_openais_format(client, server, upstream):
    tool = {"type": "function", "name": "double", "parameters": TOOL["input_schema"], "strict": False}
    request_fields = {"model": f"{upstream}/lab", "input": "hello", "instructions": "Be brief.", "tools": [tool]}
    raw = client.responses.input_tokens.with_raw_response.count(**request_fields)
    counted = raw.parse()
    assert counted.to_dict().keys() == {"object", "input_tokens"}
    assert (counted.object, raw.headers["x-routing-provider"]) == ("response.input_tokens", upstream)
    if upstream == "one":
        assert (raw.headers["x-routing-estimate"], server.lab.requests) == ("true", [])
        return
    client.responses.create(**request_fields)
    count_request, called = server.lab.requests
    assert counted.input_tokens == len(count_request.body)
    assert (count_request.heard.turns, count_request.heard.tools) == (called.heard.turns, called.heard.tools)


def test_refused_token_count_has_openais_error_format(client, server):
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.input_tokens.count(model="nothing/here", input="hello")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.input_tokens.count(model="one/lab", input=[{"type": "message", "role": "user", "content": 3}])
    assert caught.value.param.startswith("input[0]")


@pytest.mark.parametrize("step", ["http_404", "http_500", "bad_json"])
def test_failing_token_counter_is_replaced_by_an_estimate(claude, server, step):
    request_fields = {"model": f"by-anthropic/fault:{step}", "messages": HELLO}
    response_headers = [claude.messages.with_raw_response.count_tokens(**request_fields).headers for _ in range(2)]
    assert [headers["x-routing-estimate"] for headers in response_headers] == ["true", "true"]
    assert len(server.lab.requests) == 1


def test_described_image_is_counted_as_text_and_not_stored(claude, server):
    """The description that is counted has a placeholder id, which is as long as a real one."""
    messages = [{"role": "user", "content": [{"type": "image", "source": PICTURE}]}]
    request_fields = {"model": "by-anthropic/lab", "messages": messages}
    before = server.get("/v1/files")["data"]
    claude.messages.count_tokens(**request_fields)
    assert server.get("/v1/files")["data"] == before
    claude.messages.create(**request_fields, max_tokens=50)
    counted, called = (request.heard.turns[-1][1] for request in server.lab.requests)
    assert len(counted) == len(called)
    assert "artifact:" in counted


def test_failed_token_counter_is_called_again_later():
    now = [0.0]
    silent = SilentCounters(lambda: now[0])
    silent.add(("one", "m"))
    assert (silent.has(("one", "m")), silent.has(("one", "other"))) == (True, False)
    now[0] = COUNTER_RETRY_SECONDS
    assert not silent.has(("one", "m"))
