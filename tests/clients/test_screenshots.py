"""A coding agent's tool returns a screenshot. Then the model that reads images fails.

The text-only model that takes over gets a description. The vendors' own clients send what Codex and Claude Code send,
through both APIs, complete and streamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.clients.exchanges import load
from tests.gateway.serving import Server, serving
from tests.lab import Lab

VISION_MODEL, TEXT_MODEL = "sees", "reads"
INPUT = {VISION_MODEL: ["text", "vision"], TEXT_MODEL: ["text"]}
ROUTE = "task:coding-with-pictures"
PNG_DATA = "iVBORw0KGgo"
"""The beginning of a PNG in base64."""
EXTRA = ("client_metadata",)
"""Fields that Codex adds to its requests but OpenAI's client does not know."""


def providers(lab: Lab) -> dict[str, Any]:
    rows = [
        {"providerName": name, "apiKey": "NOT_NEEDED", "endpoint": lab.url("openai", name), "defaultModel": "lab"}
        for name in INPUT
    ]
    route = {"provider": VISION_MODEL, "fallback": [TEXT_MODEL], "retries": 0}
    return {"providers": rows, "routing": {ROUTE.removeprefix("task:"): route, "default": {"provider": TEXT_MODEL}}}


def services(lab: Lab) -> dict[str, Any]:
    shared = {"model": "lab", "apiKey": "NOT_NEEDED", "capabilityTags": [], "description": ""}
    return {
        "services": [
            {
                **shared,
                "id": name,
                "name": name,
                "baseURL": lab.url("openai", name),
                "capabilities": {"input": inputs, "output": ["text", "tool_calling"]},
            }
            for name, inputs in INPUT.items()
        ]
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with (
        Lab() as lab,
        serving(tmp_path_factory.mktemp("screenshots"), lab, [providers(lab), services(lab)]) as server,
    ):
        yield server


@pytest.fixture
def lab(server: Server) -> Lab:
    server.lab.play({VISION_MODEL: ["capable", "http_503"], TEXT_MODEL: "capable"})
    return server.lab


def test_codex_continues_with_a_text_only_model(server: Server, lab: Lab, streamed: bool) -> None:
    """Headers and log say that the model gets the image's name, its reference, and agents that can read it."""
    request, (first, second) = load("codex", "request"), load("codex", "screenshot")["turns"]
    body = {key: value for key, value in request["body"].items() if key not in (*EXTRA, "stream", "input")}
    extra = {key: request["body"][key] for key in EXTRA}
    client = openai.OpenAI(
        api_key=server.key, base_url=f"{server.url}/v1", max_retries=0, default_headers=request["headers"]
    )

    def ask(items: list[Any]) -> tuple[Any, Any]:
        fields = {**body, "model": ROUTE, "input": items, "stream": streamed}
        raw = client.responses.with_raw_response.create(**fields, extra_body=extra)
        answer = raw.parse()
        return raw.headers, list(answer)[-1].response if streamed else answer

    items = [*request["body"]["input"], *first["sent"]]
    _, called = ask(items)
    (call,) = [item for item in called.output if item.type == "function_call"]
    result = {**second["sent"][0], "call_id": call.call_id}
    headers, answer = ask([*items, *(item.model_dump(exclude_none=True) for item in called.output), result])
    assert answer.output_text.startswith("You said:")
    check(server, lab, headers)


def test_claude_code_continues_with_a_text_only_model(server: Server, lab: Lab, streamed: bool) -> None:
    request, (first, second) = load("claude_code", "request"), load("claude_code", "screenshot")["turns"]
    body = {key: value for key, value in request["body"].items() if key != "stream"}
    client = anthropic.Anthropic(
        api_key=server.key, base_url=server.url, max_retries=0, default_headers=request["headers"]
    )

    def ask(messages: list[Any]) -> tuple[Any, Any]:
        fields: Any = {**body, "model": ROUTE, "messages": messages}
        if not streamed:
            raw = client.beta.messages.with_raw_response.create(**fields, timeout=60)
            return raw.headers, raw.parse()
        with client.beta.messages.stream(**fields) as stream:
            return stream.response.headers, stream.get_final_message()

    _, called = ask(first["sent"])
    (call,) = [block for block in called.content if block.type == "tool_use"]
    result = {**second["sent"][0]["content"][0], "tool_use_id": call.id}
    message = {"role": "assistant", "content": called.content}
    headers, answer = ask([*first["sent"], message, {"role": "user", "content": [result]}])
    assert answer.content[-1].text.startswith("You said:")
    check(server, lab, headers)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def check(server: Server, lab: Lab, headers: Any) -> None:
    first_request, second_request = lab.requests[-2:]
    assert (first_request.name, [media.mime_type for media in first_request.heard.media]) == (
        VISION_MODEL,
        ["image/png"],
    )
    assert (second_request.name, second_request.heard.media, PNG_DATA in second_request.body.decode()) == (
        TEXT_MODEL,
        [],
        False,
    )
    ((_, text),) = second_request.heard.results
    reference = re.search(r"artifact:([0-9a-z_-]+)", text)
    assert reference
    assert server.get(f"/v1/files/{reference[1]}")["bytes"] == 70
    assert "vision-agent" in text
    assert (headers["x-routing-provider"], headers["x-routing-attempts"]) == (TEXT_MODEL, "2")
    assert headers["x-routing-adaptation"] == "image=described"
    failed, answered = server.timeline(headers["x-request-id"])["attempts"]
    assert (failed["provider"], failed["outcome"], failed["deliveries"][0]["shown"]) == (
        VISION_MODEL,
        "http_503",
        "as_is",
    )
    delivery = answered["deliveries"][0]
    assert (answered["provider"], answered["outcome"], delivery["shown"]) == (TEXT_MODEL, "ok", "described")
    assert delivery["artifactId"] == reference[1]
