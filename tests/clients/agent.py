"""A simulated client program: it sends the requests of a recorded exchange and adds the answers to the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.clients.exchanges import load
from tests.processes import NO_CERTIFICATES

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer, complete or assembled from its stream: text, reasoning, tool calls, and its blocks as received.

    `broken` is the error event that ended the stream.
    """

    status: int
    headers: Mapping[str, str]
    blocks: list[Json] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    usage: Json = field(default_factory=dict)
    error: Json = field(default_factory=dict)
    broken: Json = field(default_factory=dict)


@dataclass
class Agent:
    """A client's conversation with a model about one kind of content."""

    url: str
    key: str
    program: str
    content: str
    model: str
    streamed: bool

    def __post_init__(self) -> None:
        self.request, self.exchange = load(self.program, "request"), load(self.program, self.content)
        self.body: Json = {**self.request["body"], **self.exchange.get("body", {})}
        self.chat_api = CHAT_APIS[self.program]
        self.history: list[Json] = list(self.body.get(self.chat_api.key, []))

    def ask(self, messages: list[Json], last: Reply | None, model: str = "", path: str = "") -> Reply:
        ids = [call_id for call_id, _, _ in last.calls] if last else []
        if last:
            self.history += self.chat_api.as_history(last)
        self.history += json.loads(_with_ids(json.dumps(messages), ids))
        fields = {name: value for name, value in self.body.items() if value is not None}
        if not self.streamed:
            fields.pop("stream_options", None)
        body = {**fields, self.chat_api.key: self.history, "model": model or self.model, "stream": self.streamed}
        headers = {**self.request["headers"], self.chat_api.header: self.chat_api.scheme + self.key}
        url = self.url + (path or self.request["path"])
        answer = httpx.post(url, json=body, headers=headers, timeout=30, verify=NO_CERTIFICATES)
        if answer.status_code != 200:
            return Reply(answer.status_code, answer.headers, error=answer.json()["error"])
        if "text/event-stream" in answer.headers["content-type"]:
            return self.chat_api.parse_events(answer.headers, list(self.chat_api.events(answer.text)))
        return self.chat_api.parse_response(answer.headers, answer.json())

    def count(self, messages: list[Json]) -> httpx.Response:
        body = {key: value for key, value in self.body.items() if key in ("system", "tools", "thinking")}
        headers = {**self.request["headers"], self.chat_api.header: self.chat_api.scheme + self.key}
        request = {**body, "model": self.model, "messages": messages}
        url = f"{self.url}/v1/messages/count_tokens?beta=true"
        return httpx.post(url, json=request, headers=headers, timeout=30, verify=NO_CERTIFICATES)


def _with_ids(text: str, ids: list[str]) -> str:
    for position, call_id in enumerate(ids):
        text = text.replace(f"$call:{position}", call_id)
    assert "$call:" not in text, "a result of a call that was not made"
    return text


def _events(text: str) -> Iterator[Json]:
    """Yield a stream's events. Each event's name must equal the type in its data."""
    for block in text.strip().split("\n\n"):
        name, _, data = block.partition("\n")
        value: Json = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        yield value


class Responses:
    """OpenAI's Responses API, with answers read as Codex reads them."""

    key, header, scheme = "input", "authorization", "Bearer "
    events = staticmethod(_events)

    def parse_response(self, headers: Mapping[str, str], value: Json) -> Reply:
        items = value["output"]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        reasoning = [part for item in items if item["type"] == "reasoning" for part in item["summary"]]
        calls = [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in items
            if item["type"] == "function_call"
        ]
        text = "".join(part["text"] for part in parts if part["type"] == "output_text")
        return Reply(
            200, headers, items, text, "".join(part["text"] for part in reasoning), calls, value["usage"] or {}
        )

    def parse_events(self, headers: Mapping[str, str], events: list[Json]) -> Reply:
        """Return the response in the last event. Earlier items and text deltas must add up to it."""
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        last = events[-1]
        if last["type"] == "response.failed":
            return Reply(200, headers, broken=last["response"]["error"])
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert sorted(items, key=json.dumps) == sorted(last["response"]["output"], key=json.dumps)
        reply = self.parse_response(headers, last["response"])
        assert _joined(events, "response.output_text.delta") == reply.text
        assert _joined(events, "response.reasoning_summary_text.delta") == reply.reasoning
        return reply

    def as_history(self, reply: Reply) -> list[Json]:
        return reply.blocks


def _joined(events: list[Json], kind: str) -> str:
    return "".join(event["delta"] for event in events if event["type"] == kind)


class Messages:
    """Anthropic's Messages API, with answers read as Claude Code reads them."""

    key, header, scheme = "messages", "x-api-key", ""
    events = staticmethod(_events)

    def parse_response(self, headers: Mapping[str, str], value: Json) -> Reply:
        blocks = value["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        reasoning = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
        calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        assert value["stop_reason"] == ("tool_use" if calls else "end_turn")
        return Reply(200, headers, blocks, text, reasoning, calls, value["usage"])

    def parse_events(self, headers: Mapping[str, str], events: list[Json]) -> Reply:
        """Return the message assembled from its blocks. Each block must stop before the next one starts."""
        blocks: list[Json] = []
        last: Json = {}
        for event in events:
            kind = event["type"]
            if kind == "error":
                return Reply(200, headers, broken=event["error"])
            if kind == "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append({**event["content_block"], "_arguments": ""})
            elif kind == "content_block_delta":
                _continue(blocks[event["index"]], event["delta"])
            elif kind == "content_block_stop":
                arguments = blocks[event["index"]].pop("_arguments")
                if arguments:
                    blocks[event["index"]]["input"] = json.loads(arguments)
            elif kind == "message_delta":
                last = event
        assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
        return self.parse_response(headers, {"content": blocks, "usage": last["usage"], **last["delta"]})

    def as_history(self, reply: Reply) -> list[Json]:
        blocks = [{key: value for key, value in block.items() if value is not None} for block in reply.blocks]
        return [{"role": "assistant", "content": blocks}]


DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _continue(block: Json, delta: Json) -> None:
    if delta["type"] == "input_json_delta":
        block["_arguments"] += delta["partial_json"]
    else:
        key = DELTAS[delta["type"]]
        block[key] += delta[key]


@dataclass(frozen=True)
class Chat:
    """OpenAI's chat completions, with answers read as chat clients read them.

    `returned` names the fields of an answer that the client sends back.
    """

    returned: tuple[str, ...] = ()
    key, header, scheme = "messages", "authorization", "Bearer "

    def events(self, text: str) -> Iterator[Json]:
        """Yield a stream's chunks. The stream ends with `[DONE]` or with an error."""
        *blocks, last = [block.removeprefix("data: ") for block in text.strip().split("\n\n") if block[0] != ":"]
        yield from map(json.loads, blocks)
        if last != "[DONE]":
            yield json.loads(last)

    def parse_response(self, headers: Mapping[str, str], value: Json) -> Reply:
        (choice,), usage = value["choices"], value["usage"]
        message = choice["message"]
        tool_calls = message.get("tool_calls") or []
        assert choice["finish_reason"] == ("tool_calls" if tool_calls else "stop")
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in tool_calls
        ]
        counts = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
        text, reasoning = message["content"] or "", message.get("reasoning_content") or ""
        return Reply(200, headers, [message], text, reasoning, calls, counts)

    def parse_events(self, headers: Mapping[str, str], events: list[Json]) -> Reply:
        """Return the completion assembled from its chunks. The last chunk has the usage."""
        if "error" in events[-1]:
            return Reply(200, headers, broken=events[-1]["error"])
        *chunks, last = events
        assert last["choices"] == []
        message: Json = {"content": "", "reasoning_content": "", "tool_calls": []}
        for chunk in chunks:
            (choice,) = chunk["choices"]
            _continue_message(message, choice["delta"])
        completed = {"message": message, "finish_reason": choice["finish_reason"]}
        return self.parse_response(headers, {"choices": [completed], "usage": last["usage"]})

    def as_history(self, reply: Reply) -> list[Json]:
        returned = ("tool_calls", *self.returned)
        return [
            {
                "role": "assistant",
                "content": message["content"] or "",
                **{name: message[name] for name in returned if message.get(name)},
            }
            for message in reply.blocks
        ]


def _continue_message(message: Json, delta: Json) -> None:
    for name in ("content", "reasoning_content"):
        message[name] += delta.get(name) or ""
    message.setdefault("reasoning_details", []).extend(delta.get("reasoning_details", ()))
    for piece in delta.get("tool_calls", ()):
        if piece["index"] == len(message["tool_calls"]):
            message["tool_calls"].append({"id": piece["id"], "type": "function", "function": {**piece["function"]}})
        else:
            message["tool_calls"][piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


CHAT_APIS: dict[str, Responses | Messages | Chat] = {
    "codex": Responses(),
    "claude_code": Messages(),
    "open_webui": Chat(returned=("reasoning_details",)),
    "librechat": Chat(),
    "dify": Chat(),
}
