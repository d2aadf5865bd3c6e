"""Replay recorded exchanges for each client program, protocol and kind of content, streamed and not.

The tests are part of the normal test run and also one of the suites of `make test-clients`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from capabilities.core.protocols import PROTOCOLS
from tests.clients.agent import Agent, Reply
from tests.clients.exchanges import CONTENTS, HERE, load
from tests.clients.run import MODELS, served
from tests.gateway.serving import Server

REASONING_TEXT = "First I think about it. 先想一想。"
SIGNATURES = {"openai": "", "openai-responses": "c2VjcmV0", "anthropic": "c2lnbmVk", "gemini": "c2lnbmVk"}
"""The reasoning signature that each protocol's model expects back. The chat completions protocol has none."""
FILES = [(program, content) for program, contents in CONTENTS.items() for content in contents]
CELLS = [(program, protocol, content) for (program, content), protocol in product(FILES, MODELS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("exchanges")) as server:
        yield server


def test_exchange_files_cover_every_program_protocol_and_content() -> None:
    """Every protocol with a server is covered, and each program has exactly one file for each kind of content."""
    assert set(MODELS) == set(SIGNATURES) == set(PROTOCOLS) - {"echo"}
    written = {(path.parent.name, path.stem) for path in HERE.glob("*/*.json")}
    assert written == {*FILES, *((program, "request") for program in CONTENTS)}
    assert all(load(program, content)["turns"] for program, content in FILES)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("program", "protocol", "content"), CELLS)
def test_exchange_matches_its_recording(
    server: Server, program: str, protocol: str, content: str, streamed: bool
) -> None:
    """In each turn, the answer and the request that the provider received are as expected."""
    agent = Agent(server.url, server.key, program, content, MODELS[protocol], streamed)
    reply: Reply | None = None
    for turn in agent.exchange["turns"]:
        expected = turn["expected"]
        reply = agent.ask(turn["sent"], reply, choose_model(expected, MODELS[protocol], program, streamed))
        check(reply, expected, streamed)
        check_received(server, expected.get("heard", {}), protocol)


def choose_model(expected: dict[str, Any], model: str, program: str, streamed: bool) -> str:
    """Return the model's name, or the name of a model that fails as the exchange expects.

    Only this program uses the failing model, since it may go into cooldown.
    """
    own = f"by={program}-{streamed}"
    if "refused" in expected:
        return f"{model}/fault:http_{expected['refused']}:retry_after=30:{own}"
    return f"{model}/fault:{'reset_mid_body' if streamed else 'http_501'}:{own}" if "breaks" in expected else model


def check(reply: Reply, expected: dict[str, Any], streamed: bool) -> None:
    breaks = "breaks" in expected
    assert reply.status == expected.get("refused", 502 if breaks and not streamed else 200), reply.error
    assert bool(reply.error) == (reply.status != 200)
    assert bool(reply.broken) == (breaks and streamed)
    if reply.status != 200 or reply.broken:
        assert (reply.error or reply.broken)["message"]
        return
    assert reply.headers["x-routing-attempts"] == "1"
    assert [[name, arguments] for _, name, arguments in reply.calls] == expected.get("calls", [])
    assert all(fragment in reply.text for fragment in expected.get("says", ()))
    if "thinks" in expected:
        assert reply.reasoning == REASONING_TEXT
    if "json" in expected:
        assert json.loads(reply.text) == expected["json"]
    assert reply.usage["input_tokens"] + reply.usage["output_tokens"] > 0


def check_received(server: Server, expected: dict[str, Any], protocol: str) -> None:
    last = server.lab.requests[-1]
    heard = last.heard
    assert not heard.problem
    system = "\n".join(text for role, text in heard.turns if role in ("system", "developer"))
    assert expected.get("system", "") in system
    files = expected.get("media", [])
    assert [media.mime_type for media in heard.media] == (files.get(protocol, []) if isinstance(files, dict) else files)
    assert [name for name, _ in heard.calls] == expected.get("calls", [name for name, _ in heard.calls])
    for fragment in expected.get("results", ()):
        assert any(fragment in text for _, text in heard.results)
    if "carries" in expected:
        assert SIGNATURES[protocol] in last.body.decode()


@pytest.mark.parametrize("protocol", MODELS)
def test_token_count_for_claude_code_includes_its_tools(server: Server, protocol: str) -> None:
    agent = Agent(server.url, server.key, "claude_code", "document", MODELS[protocol], False)
    (turn,) = agent.exchange["turns"]
    response = agent.count(turn["sent"])
    assert response.status_code == 200
    assert response.json()["input_tokens"] > 100
