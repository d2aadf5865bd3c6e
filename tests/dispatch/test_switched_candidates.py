"""Conversations that switch vendors every other turn. No vendor rejects what another vendor produced.

The tests cover each chat API against strict fakes of the vendors, with tools, images, reasoning and several turns. The
client sends back everything it received.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import pytest

from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, model_endpoint, prepare
from capabilities.core.delivery.vendor_items import restore_names, restore_names_in
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Capabilities
from capabilities.core.wire import Answer, Delta, Finish, Target, split_payload
from routing_admin.dispatch.reasoning_cache import ReasoningCache, build_answered_turn
from routing_admin.gateway.chat import parsing as chat_parsing
from routing_admin.gateway.chat.rendering import Chunks, completion_json
from routing_admin.gateway.chat_api import AnswerEvents, ChatCall
from routing_admin.gateway.messages import parsing as messages_parsing
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.rendering import message_json
from routing_admin.gateway.responses import parsing as responses_parsing
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from tests.dispatch.test_conversations_of_presets import assemble_message
from tests.gateway.sdk_types import accumulate_message, check_whole, events_in
from tests.lab.strict_hosts import PLACES, ROUNDS, TOOL, StrictHost, strict_host
from tests.lab.vendor_rules import find_refusals

Json = dict[str, Any]
VENDORS: Mapping[str, tuple[str, str]] = {
    "openai": ("https://api.openai.com/v1", "gpt-5.6"),
    "openai-responses": ("https://api.openai.com/v1", "gpt-5.6"),
    "anthropic": ("https://api.anthropic.com/v1", "claude-sonnet-4-5"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta", "gemini-3-pro"),
}
PNG = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
PNG_URL = f"data:image/png;base64,{PNG}"
STRICT_SCHEMA: Json = {
    "type": "object",
    "properties": {"s": {"type": "string", "minLength": 1, "format": "phone"}},
    "required": ["s"],
    "additionalProperties": False,
}
LOOSE_SCHEMA: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "m": {"$ref": "#/$defs/M", "description": "words"}},
    "anyOf": [{"required": ["n"]}, {"required": ["m"]}],
    "$defs": {"M": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
}
TOOLS: Mapping[str, tuple[Json, bool]] = {
    TOOL: ({"type": "object"}, False),
    "files.read/" + "x" * 70: (LOOSE_SCHEMA, False),
    "write": (STRICT_SCHEMA, True),
}
QUESTIONS = ("Look three times.", "And now?")


class Chat:
    """A client of the Chat Completions API. The other clients' methods do the same for their APIs."""

    def __init__(self) -> None:
        picture = {"type": "image_url", "image_url": {"url": PNG_URL}}
        self.history: list[Json] = [{"role": "system", "content": "Be short."}]
        self.history.append({"role": "user", "content": [{"type": "text", "text": QUESTIONS[0]}, picture]})

    def body(self) -> Json:
        tools = [
            {"type": "function", "function": {"name": name, "parameters": schema, "strict": strict}}
            for name, (schema, strict) in TOOLS.items()
        ]
        shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": STRICT_SCHEMA, "strict": True}}
        more = {"stop": ["END", "STOP"], "reasoning_effort": "low", "response_format": shape}
        return {"model": "m", "messages": self.history, "tools": tools, "max_tokens": 3000, **more}

    def parse(self, body: Json) -> ChatCall:
        return chat_parsing.parse(body, lambda ref: None)

    def whole(self, answer: Answer, _call: ChatCall, origin: str) -> Json:
        return completion_json(answer, "m", origin)

    def events(self, _call: ChatCall, origin: str) -> AnswerEvents:
        return Chunks("m", origin=origin)

    def take(self, value: Json | bytes) -> str:
        """Append an answer or a stream, with the results of its tool calls.

        Return its text, or "" if it called a tool.
        """
        message = assemble_message(value) if isinstance(value, bytes) else value["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        for call in calls:
            call.pop("index", None)
        self.history.append(message)
        self.history += [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in calls]
        return "" if calls else message["content"]

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})


class Messages:
    """A client of Anthropic's Messages API with thinking enabled. Its tools return images."""

    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}

    def __init__(self) -> None:
        self.history: list[Json] = [{"role": "user", "content": [self.picture, {"type": "text", "text": QUESTIONS[0]}]}]

    def body(self) -> Json:
        tools = [{"name": name, "input_schema": schema, "strict": strict} for name, (schema, strict) in TOOLS.items()]
        more = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "stop_sequences": ["END", "STOP"]}
        return {"model": "m", "messages": self.history, "tools": tools, "max_tokens": 3000, **more}

    def parse(self, body: Json) -> ChatCall:
        return messages_parsing.parse(body, lambda ref: None)

    def whole(self, answer: Answer, call: ChatCall, origin: str) -> Json:
        return message_json(answer, call, "m", origin)

    def events(self, _call: ChatCall, origin: str) -> AnswerEvents:
        return MessageEvents("m", origin)

    def take(self, value: Json | bytes) -> str:
        content = accumulate_message(value).to_dict()["content"] if isinstance(value, bytes) else value["content"]
        self.history.append({"role": "assistant", "content": content})
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        seen = [self.picture, {"type": "text", "text": "seen"}]
        results = [{"type": "tool_result", "tool_use_id": call_id, "content": seen} for call_id in calls]
        self.history.append({"role": "user", "content": results})
        return ""

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})


class Responses:
    """A client of OpenAI's Responses API that keeps the conversation itself."""

    def __init__(self) -> None:
        content = [{"type": "input_text", "text": QUESTIONS[0]}, {"type": "input_image", "image_url": PNG_URL}]
        self.history: list[Json] = [{"type": "message", "role": "user", "content": content}]

    def body(self) -> Json:
        tools = [
            {"type": "function", "name": name, "parameters": schema, "strict": strict}
            for name, (schema, strict) in TOOLS.items()
        ]
        shape = {"format": {"type": "json_schema", "name": "a", "schema": STRICT_SCHEMA, "strict": True}}
        more = {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"], "store": False}
        return {"model": "m", "input": self.history, "tools": tools, "max_output_tokens": 3000, "text": shape, **more}

    def parse(self, body: Json) -> ChatCall:
        return responses_parsing.parse(body, lambda ref: None)

    def whole(self, answer: Answer, call: ChatCall, origin: str) -> Json:
        return response_json(answer, call, "m", origin)

    def events(self, call: ChatCall, origin: str) -> AnswerEvents:
        return ResponseEvents(ResponseHead("m", call.chat), origin)

    def take(self, value: Json | bytes) -> str:
        response = events_in(value)[-1][1]["response"] if isinstance(value, bytes) else value
        self.history += response["output"]
        calls = [item["call_id"] for item in response["output"] if item["type"] == "function_call"]
        if not calls:
            return str(response["output"][-1]["content"][0]["text"])
        seen = [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": PNG_URL}]
        self.history += [{"type": "function_call_output", "call_id": call_id, "output": seen} for call_id in calls]
        return ""

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})


APIS: Mapping[str, Callable[[], Chat | Messages | Responses]] = {
    "chat completions": Chat,
    "messages": Messages,
    "responses": Responses,
}


def make_endpoint(name: str) -> ModelEndpoint:
    endpoint, model = VENDORS[name]
    target = Target(name, endpoint, model, "k", quirks=PLACES[name][1])
    return model_endpoint(name, target, Capabilities(("text", "vision", "file"), ("text",)))


ENDPOINTS = {name: make_endpoint(name) for name in VENDORS}


class Conversation:
    def __init__(self, api: str, *, stream: bool) -> None:
        self.api, self.client, self.stream = api, APIS[api](), stream
        self.hosts = {name: strict_host(name, name) for name in VENDORS}
        self.memory = ReasoningCache()

    def turn(self, name: str) -> str:
        """Return the text of the vendor's answer, or "" if the vendor called a tool.

        The tool result is appended immediately.
        """
        endpoint = ENDPOINTS[name]
        call = self.client.parse(json.loads(json.dumps(self.client.body())))
        chat = self.memory.complete("ada", call.chat)
        prepared = prepare(chat, endpoint, text_style_for(chat, "en", lambda _: ()), stream=self.stream)
        assert not isinstance(prepared, CannotRead)
        # Replace the data of each file in the payload with the base64 form of a single letter.
        body = json.loads(
            b"".join(
                chunk if isinstance(chunk, bytes) else b"eA==" for chunk in split_payload(prepared.request.payload)
            )
        )
        return self.client.take(
            (self._streamed if self.stream else self._whole)(self.hosts[name], endpoint, call, prepared, body)
        )

    def _whole(self, host: StrictHost, endpoint: ModelEndpoint, call: ChatCall, prepared: Prepared, body: Json) -> Json:
        answer = endpoint.protocol.decode(200, {}, host.answer(body, stream=False))
        assert isinstance(answer, Answer), answer
        answer = restore_names(answer, prepared.tool_names)
        self.memory.keep("ada", build_answered_turn(answer), endpoint.origin)
        value = self.client.whole(answer, call, endpoint.origin)
        check_whole(self.api, value)
        return value

    def _streamed(
        self, host: StrictHost, endpoint: ModelEndpoint, call: ChatCall, prepared: Prepared, body: Json
    ) -> bytes:
        decoder, events = PROTOCOLS[endpoint.protocol.name].decoder(), self.client.events(call, endpoint.origin)
        written = b""
        for event in (*decoder.feed(host.answer(body, stream=True)), *decoder.close()):
            event = restore_names_in(event, prepared.tool_names)
            assert isinstance(event, Delta | Finish), event
            written += events.write_delta(event) if isinstance(event, Delta) else events.write_finish(event)
        self.memory.keep("ada", events.turn, endpoint.origin)
        return written


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_vendor_accepts_conversations_with_turns_from_other_vendors(api: str, *, stream: bool) -> None:
    """Two vendors take turns: up to three rounds of tool calls, the answer to them, and another question."""
    for first, second in permutations(VENDORS, 2):
        conversation = Conversation(api, stream=stream)
        for name in (first, second, first)[:ROUNDS]:
            assert conversation.turn(name) == "", (first, second)
        assert conversation.turn(second) == "done", (first, second)
        conversation.client.ask(QUESTIONS[1])
        assert conversation.turn(first) == "done", (first, second)


VALID_REQUESTS: Mapping[str, Json] = {
    "openai": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "openai-responses": {"model": "m", "input": [{"role": "user", "content": "x"}]},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
}
TOOL_ENTRY: Mapping[str, Callable[[str, Json], Json]] = {
    "openai": lambda name, schema: {"type": "function", "function": {"name": name, "parameters": schema}},
    "openai-responses": lambda name, schema: {"type": "function", "name": name, "parameters": schema, "strict": False},
    "anthropic": lambda name, schema: {"name": name, "input_schema": schema},
    "gemini": lambda name, schema: {"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]},
}
INVALID_SCHEMAS: Mapping[str, Json] = {"gemini": {"$ref": "#/$defs/a", "title": "x", "$defs": {"a": {}}}}
TOO_MANY_STOPS: Mapping[str, Json] = {
    "openai": {"stop": list("abcde")},
    "anthropic": {"stop_sequences": [" "]},
    "gemini": {"generationConfig": {"stopSequences": list("abcdef")}},
}


@pytest.mark.parametrize("protocol", VALID_REQUESTS)
def test_strict_fake_vendor_rejects_an_invalid_request(protocol: str) -> None:
    valid, tool = VALID_REQUESTS[protocol], TOOL_ENTRY[protocol]
    assert not list(find_refusals(protocol, valid))
    assert not list(find_refusals(protocol, {**valid, "tools": [tool("look", {"type": "object"})]}))
    wrong = INVALID_SCHEMAS.get(protocol, {"type": "object", "anyOf": [{}]})
    for fields in (
        {"surprise": 1},
        {"tools": [tool("x" * 65, {"type": "object"})]},
        {"tools": [tool("look", wrong)]},
        TOO_MANY_STOPS.get(protocol, {"surprise": None}),
    ):
        assert list(find_refusals(protocol, {**valid, **fields})), fields
