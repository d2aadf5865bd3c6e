"""Tools that only one vendor has, such as its web search, over real sockets.

A route that refuses to drop a tool calls only candidates that support it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.processes import NO_CERTIFICATES

SEARCH = {
    "/v1/messages": {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
    "/v1/responses": {"type": "web_search", "search_context_size": "low"},
    "/v1beta": {"googleSearch": {"excludeDomains": ["a.example"]}},
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "Who won?"}]},
    "/v1/responses": {"input": "Who won?"},
    "/v1beta": {"contents": [{"role": "user", "parts": [{"text": "Who won?"}]}]},
}
VENDORS = {"/v1/messages": "by-anthropic", "/v1/responses": "by-openai-responses", "/v1beta": "by-gemini"}
PLACES = {"/v1/messages": "tools[0]", "/v1/responses": "tools[0]", "/v1beta": "tools[0].googleSearch"}
"""The path that each API reports if it drops or refuses the tool in `SEARCH`."""
KINDS = {
    "/v1/messages": "invalid_request_error",
    "/v1/responses": "invalid_request_error",
    "/v1beta": "invalid_argument",
}


def configured(lab: Lab) -> dict[str, Any]:
    """Add routes whose candidates lack a vendor's own web search, except that the last candidate may have it.

    The provider `without` speaks Anthropic's protocol but supports none of Anthropic's own tools.
    """
    file = routing(lab)
    for provider in file["providers"]:
        if provider["providerName"] == "one":
            file["providers"].append(
                {**provider, "providerName": "without", "protocol": "anthropic", "vendorTools": []}
                | {"endpoint": lab.url("anthropic", "without")}
            )
            break
    chain = {"provider": "one", "retries": 0, "onDrop": "refuse"}
    for name, vendor in (("claude", "by-anthropic"), ("openai", "by-openai-responses")):
        file["routing"][f"insists-{name}"] = {**chain, "fallback": ["without", "by-gemini", vendor]}
    file["routing"] |= {
        "insists-google": {**chain, "fallback": ["without", "by-anthropic", "by-gemini"]},
        "insists-alone": {**chain, "fallback": ["without", "by-gemini"]},
        "insists-alone-google": {**chain, "fallback": ["without", "by-anthropic"]},
        "yields": {"provider": "one", "retries": 0},
    }
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("vendor-tools"), configured=configured) as server:
        yield server


def ask(server: Server, path: str, model: str, *, stream: bool = False, **headers: str) -> httpx.Response:
    server.lab.play({})
    body = {**BODIES[path], "tools": [SEARCH[path]]}
    if path == "/v1beta":
        path += f"/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    else:
        body |= {"model": model, "stream": stream}
    sent = {"authorization": f"Bearer {server.key}", **headers}
    return httpx.post(server.url + path, json=body, headers=sent, timeout=30, verify=NO_CERTIFICATES)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "route"), [("/v1/messages", "claude"), ("/v1/responses", "openai"), ("/v1beta", "google")]
)
def test_route_that_forbids_dropping_calls_only_candidates_with_the_tool(
    server: Server, path: str, route: str, stream: bool
) -> None:
    answer = ask(server, path, f"task:insists-{route}", stream=stream)
    assert answer.status_code == 200, answer.text
    (request,) = server.lab.requests
    assert (request.name, request.json["tools"]) == (VENDORS[path], [SEARCH[path]])
    assert "x-routing-dropped" not in answer.headers
    attempts = server.timeline(answer.headers["x-request-id"])["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["skipped_would_drop"] * 3 + ["ok"]
    assert [PLACES[path] in attempt["error"] for attempt in attempts[:3]] == [True] * 3


@pytest.mark.parametrize("path", list(SEARCH))
@pytest.mark.parametrize(
    ("model", "headers"), [("task:insists-alone", {}), ("task:yields", {"x-routing-strict": "true"})]
)
def test_call_is_refused_with_the_tools_path_if_no_candidate_has_the_tool(
    server: Server, path: str, model: str, headers: dict[str, str]
) -> None:
    if path == "/v1beta" and model == "task:insists-alone":
        model += "-google"
    answer = ask(server, path, model, **headers)
    error = answer.json()["error"]
    kind = error.get("type") or error["status"]
    assert (answer.status_code, kind.lower(), server.lab.requests) == (400, KINDS[path], [])
    assert PLACES[path] in error["message"]
    assert error.get("param", PLACES[path]) == PLACES[path]


@pytest.mark.parametrize("path", list(SEARCH))
def test_route_that_allows_dropping_lists_the_dropped_tool(server: Server, path: str) -> None:
    answer = ask(server, path, "task:yields")
    assert (answer.status_code, answer.headers["x-routing-dropped"]) == (200, PLACES[path])
