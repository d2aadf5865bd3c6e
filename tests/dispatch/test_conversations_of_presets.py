"""Three rounds of tool calls with each provider preset's strict fake host, with and without switching to another host.

The client sends back either every field that it received or only the fields of OpenAI's API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import orjson
import pytest

from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.model_endpoint import ModelEndpoint, model_endpoint, prepare
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Capabilities
from capabilities.core.wire import Answer, Delta, Finish, Target, split_payload
from routing_admin.dispatch.reasoning_cache import ReasoningCache, build_answered_turn
from routing_admin.gateway.chat.parsing import parse
from routing_admin.gateway.chat.rendering import Chunks, completion_json
from tests.lab.strict_hosts import OFFERED, PLACES, ROUNDS, RefusedError, StrictHost, strict_host

OWN_FIELDS = ("role", "content", "tool_calls")


def make_endpoint(name: str) -> ModelEndpoint:
    protocol, quirks = PLACES[name]
    target = Target(name, f"https://{name}.example/v1", "m", "k", quirks=quirks)
    return model_endpoint(protocol, target, Capabilities(("text",), ("text",)))


ENDPOINTS = {name: make_endpoint(name) for name in PLACES}


class Conversation:
    """A client's conversation. If `keeps` is true, the client also sends back fields that it does not know."""

    def __init__(self, *, stream: bool, keeps: bool) -> None:
        self.hosts = {name: strict_host(name, PLACES[name][0]) for name in PLACES}
        self.memory = ReasoningCache()
        self.stream, self.keeps = stream, keeps
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Look three times."},
        ]

    def ask(self, name: str) -> dict[str, Any]:
        endpoint, host = ENDPOINTS[name], self.hosts[name]
        body = {"model": "m", "messages": self.messages, "tools": [OFFERED], "max_tokens": 50}
        chat = self.memory.complete("ada", parse(json.loads(json.dumps(body)), lambda ref: None).chat)
        prepared = prepare(chat, endpoint, text_style_for(chat, "en", lambda _: ()), stream=self.stream)
        assert not isinstance(prepared, CannotRead)
        sent = json.loads(
            b"".join(chunk for chunk in split_payload(prepared.request.payload) if isinstance(chunk, bytes))
        )
        message = (self._streamed if self.stream else self._whole)(host, endpoint, sent)
        self.messages.append(message if self.keeps else {key: message[key] for key in OWN_FIELDS if key in message})
        for call in message.get("tool_calls") or ():
            # `extra_content` is not a field of OpenAI's API.
            if not self.keeps:
                call.pop("extra_content", None)
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "seen"})
        return message

    def _whole(self, host: StrictHost, endpoint: ModelEndpoint, sent: dict[str, Any]) -> dict[str, Any]:
        answer = endpoint.protocol.decode(200, {}, host.answer(sent, stream=False))
        assert isinstance(answer, Answer), answer
        self.memory.keep("ada", build_answered_turn(answer), endpoint.origin)
        message: dict[str, Any] = completion_json(answer, "m", endpoint.origin)["choices"][0]["message"]
        return message

    def _streamed(self, host: StrictHost, endpoint: ModelEndpoint, sent: dict[str, Any]) -> dict[str, Any]:
        decoder, chunks = PROTOCOLS[endpoint.protocol.name].decoder(), Chunks("m", origin=endpoint.origin)
        written = b""
        for event in (*decoder.feed(host.answer(sent, stream=True)), *decoder.close()):
            assert isinstance(event, Delta | Finish), event
            written += chunks.write_delta(event) if isinstance(event, Delta) else chunks.write_finish(event)
        self.memory.keep("ada", chunks.turn, endpoint.origin)
        return assemble_message(written)


def assemble_message(written: bytes) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for event in written.split(b"\n\n"):
        if not event.startswith(b"data: {"):
            continue
        delta = orjson.loads(event.removeprefix(b"data: "))["choices"][0]["delta"]
        for name, value in delta.items():
            if name == "tool_calls":
                join_calls(message.setdefault(name, []), value)
            elif isinstance(value, list):
                message.setdefault(name, []).extend(value)
            else:
                message[name] = message.get(name, "") + value if isinstance(value, str) and name != "role" else value
    return message


def join_calls(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        if piece["index"] == len(calls):
            calls.append({**piece, "function": dict(piece["function"])})
        else:
            calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


both_clients = pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "strips"])
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both_clients
@whole_and_streamed
@pytest.mark.parametrize("name", list(PLACES))
def test_host_accepts_three_rounds_of_its_own_tool_calls(name: str, *, stream: bool, keeps: bool) -> None:
    """Each host accepts its own tool calls when they are sent back, and finally answers "done"."""
    conversation = Conversation(stream=stream, keeps=keeps)
    for _ in range(ROUNDS):
        assert conversation.ask(name)["tool_calls"]
    assert conversation.ask(name)["content"] == "done"


@both_clients
@whole_and_streamed
def test_conversation_with_tool_calls_can_switch_to_any_other_host(*, stream: bool, keeps: bool) -> None:
    """Two hosts alternate: each makes a round of tool calls, then the first makes another, and the second answers."""
    for first, second in permutations(PLACES, 2):
        conversation = Conversation(stream=stream, keeps=keeps)
        for name in (first, second, first):
            assert conversation.ask(name)["tool_calls"], (first, second)
        assert conversation.ask(second)["content"] == "done", (first, second)


# Maps a host to a change that makes a valid history invalid for it.
BREAKS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "deepseek": lambda message: message.pop("reasoning_content"),
    "moonshot": lambda message: message.pop("reasoning_content"),
    "gemini-openai": lambda message: message["tool_calls"][0].pop("extra_content"),
    "openrouter": lambda message: message["reasoning_details"][0].update(signature="forged"),
    "mistral": lambda message: message["tool_calls"][0].update(id="call_1"),
    "groq": lambda message: message.update(reasoning_content="hm"),
}


@pytest.mark.parametrize("name", list(BREAKS))
def test_strict_fake_host_rejects_a_broken_history(name: str) -> None:
    host = strict_host(name, "openai")
    history: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    answer = json.loads(host.answer({"messages": history}, stream=False))["choices"][0]["message"]
    history += [answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "seen"}]
    # Mistral requires call ids of nine letters or digits.
    if name == "mistral":
        history[1]["tool_calls"][0]["id"] = history[2]["tool_call_id"] = "abcdefgh1"
    host.answer({"messages": history}, stream=False)
    BREAKS[name](history[1])
    if name == "mistral":
        history[2]["tool_call_id"] = "call_1"
    with pytest.raises(RefusedError):
        host.answer({"messages": history}, stream=False)


def test_strict_fake_claude_rejects_missing_or_forged_thinking_blocks() -> None:
    host = strict_host("anthropic", "anthropic")
    question = {"role": "user", "content": [{"type": "text", "text": "Look."}]}
    blocks = json.loads(host.answer({"model": "m", "messages": [question], "max_tokens": 9}, stream=False))["content"]
    results = [{"type": "tool_result", "tool_use_id": blocks[1]["id"], "content": "seen"}]

    def answer_after(content: list[Any]) -> bytes:
        turns = [question, {"role": "assistant", "content": content}, {"role": "user", "content": results}]
        return host.answer({"model": "m", "messages": turns, "max_tokens": 9}, stream=False)

    assert answer_after(blocks)
    for broken in (blocks[1:], [{**blocks[0], "signature": "forged"}, blocks[1]]):
        with pytest.raises(RefusedError):
            answer_after(broken)


def test_strict_fake_gemini_rejects_calls_without_a_genuine_signature() -> None:
    """Gemini's placeholder signature is only for calls made by other models."""
    host = strict_host("gemini", "gemini")
    question = {"role": "user", "parts": [{"text": "Look."}]}
    call = json.loads(host.answer({"contents": [question]}, stream=False))["candidates"][0]["content"]["parts"][1]
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}

    def answer_after(part: dict[str, Any]) -> bytes:
        return host.answer({"contents": [question, {"role": "model", "parts": [part]}, result]}, stream=False)

    assert answer_after(call)
    for broken in ({"functionCall": call["functionCall"]}, {**call, "thoughtSignature": "forged"}):
        with pytest.raises(RefusedError):
            answer_after(broken)
