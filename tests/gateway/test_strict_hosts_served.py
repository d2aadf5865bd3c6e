"""The official OpenAI client calls the gateway in a process of its own.

The gateway's providers are simulated hosts that check requests as strictly as the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import openai
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.lab.strict_hosts import OFFERED, PLACES


def configured(lab: Lab) -> dict[str, Any]:
    file = routing(lab)
    for name, (protocol, quirks) in PLACES.items():
        url = lab.url(protocol, f"strict-{name}")
        fields = {"providerName": f"strict-{name}", "apiKey": "NOT_NEEDED", "endpoint": url, "defaultModel": "m"}
        file["providers"].append({**fields, "protocol": protocol, "quirks": dict(quirks)})
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    script = {f"strict-{name}": f"strict:host={name}" for name in PLACES}
    with served(tmp_path_factory.mktemp("strict"), script, configured) as server:
        yield server


def ask(client: openai.OpenAI, name: str, messages: list[Any], *, stream: bool) -> dict[str, Any]:
    """Return the next message from the fake host's model, assembled by the SDK."""
    request: Any = {"model": f"strict-{name}/m", "messages": messages, "tools": [OFFERED], "max_tokens": 50}
    # A host with a reasoning model refuses a temperature, so the request must also succeed without one.
    request["temperature"] = 0.5
    if not stream:
        return client.chat.completions.create(**request).choices[0].message.model_dump(exclude_none=True)
    with client.chat.completions.stream(**request) as events:
        return events.get_final_completion().choices[0].message.model_dump(exclude_none=True)


def answer_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the message as the client sends it back, followed by the results of its tool calls."""
    message.pop("parsed", None)
    for call in message.get("tool_calls") or ():
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in message["tool_calls"]]
    return [message, *results]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", list(PLACES))
def test_conversation_with_tool_calls_continues_at_the_next_host(client, name, stream):
    """Each host receives back what it sent.

    A host that continues another host's conversation receives nothing that only the other host understands.
    """
    following = next(islice(cycle(PLACES), list(PLACES).index(name) + 1, None))
    messages: list[Any] = [{"role": "user", "content": "Look three times."}]
    for _ in range(3):
        messages += answer_calls(ask(client, name, messages, stream=stream))
    assert ask(client, following, messages, stream=stream)["content"] == "done"
