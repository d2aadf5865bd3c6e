"""In each chat API, a stream has the same blocks however the provider interleaves text, reasoning and calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Delta, Finish, Supplement
from routing_admin.gateway.chat.rendering import Chunks
from routing_admin.gateway.gemini.events import GeminiChunks
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.rendering import ResponseHead
from tests.gateway.stream_readers import ParsedAnswer, read_chat, read_gemini, read_messages, read_responses

Json = dict[str, Any]
Step = tuple[str, int, str]
"""One chunk of an answer: `text`, `reasoning`, or `call` with the number of the tool call.

The first chunk of a call is empty, because it sends only the call's name. Vendors send one call after another. The
generated chunks may be interleaved, but the arguments of calls begin in the order in which the calls were named.
"""
Call = tuple[str, Json]
UNITS = st.lists(st.sampled_from(["a", "é", "中", "\ud83d", "\ude00", "\U0001f680"]), min_size=1, max_size=5).map(
    "".join
)
"""Text from a host that cuts strings between UTF-16 units: surrogate halves at either end, or alone."""
WORDS = st.text(min_size=1, max_size=6) | UNITS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def split_units(text: str) -> str:
    """Split the text into UTF-16 units, so that it can be cut between surrogates."""
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))


def joined(pieces: Iterable[str]) -> str:
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@st.composite
def mixed_answers(draw: st.DrawFn) -> tuple[list[Call], list[Step]]:
    """Generate tool calls, and the chunks of an answer in any order that keeps each call's own chunks in sequence.

    A call without input may have no argument chunks, because some hosts send none for tools without parameters.
    """
    inputs = draw(st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), max_size=3))
    calls = [(f"tool_{number}", arguments) for number, arguments in enumerate(inputs)]
    tracks: list[list[Step]] = []
    for number, (_, arguments) in enumerate(calls):
        whole = json.dumps(arguments, ensure_ascii=False) if arguments or draw(st.booleans()) else ""
        rest, track = split_units(whole), [("call", number, "")]
        while rest:
            size = draw(st.integers(1, len(rest)))
            track.append(("call", number, rest[:size]))
            rest = rest[size:]
        tracks.append(track)
    tracks += [[(kind, 0, words)] for kind in ("text", "reasoning") for words in draw(st.lists(WORDS, max_size=4))]
    steps: list[Step] = []
    # Tool calls whose names have been sent, but whose arguments have not begun.
    waiting: list[int] = []
    while tracks := [track for track in tracks if track]:
        allowed = [track for track in tracks if track[0][0] != "call" or track[0][1] not in waiting[1:]]
        track = allowed[draw(st.integers(0, len(allowed) - 1))]
        kind, number, piece = track.pop(0)
        if kind == "call" and piece and number in waiting:
            waiting.remove(number)
        elif kind == "call" and not piece and track:
            waiting.append(number)
        steps.append((kind, number, piece))
    return calls, steps


def openai_chunks(calls: list[Call], steps: list[Step]) -> Iterator[Json]:
    announced: set[int] = set()
    for kind, number, piece in steps:
        delta: Json = {"text": {"content": piece}, "reasoning": {"reasoning_content": piece}}.get(kind, {})
        if kind == "call":
            tool_call: Json = {"index": number, "function": {"arguments": piece}}
            if number not in announced:
                tool_call["id"], tool_call["type"], tool_call["function"]["name"] = (
                    f"id_{number}",
                    "function",
                    calls[number][0],
                )
            announced.add(number)
            delta = {"tool_calls": [tool_call]}
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}


def openai_late_names(calls: list[Call], steps: list[Step]) -> Iterator[Json]:
    """Like some hosts, send a tool call's name in the call's second chunk, if there is one."""
    names: Json = {}
    follows = {number for kind, number, piece in steps if kind == "call" and piece}
    for chunk in openai_chunks(calls, steps):
        for tool_call in chunk["choices"][0]["delta"].get("tool_calls", ()):
            late_name, name = names.pop(tool_call["index"], None), tool_call["function"].get("name")
            if name and tool_call["index"] in follows:
                del tool_call["function"]["name"]
                names[tool_call["index"]] = name
            if late_name:
                tool_call["function"]["name"] = late_name
        yield chunk


def anthropic_events(calls: list[Call], steps: list[Step]) -> Iterator[Json]:
    yield {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1}}}
    block_indexes: dict[int, int] = {}
    index = -1
    for kind, number, piece in steps:
        block_index = block_indexes.get(number) if kind == "call" else None
        if block_index is None:
            index = block_index = index + 1
            name = {"text": "text", "reasoning": "thinking"}.get(kind, "")
            block: Json = {"type": name, name: ""}
            if kind == "call":
                block_indexes[number] = block_index
                block = {"type": "tool_use", "id": f"id_{number}", "name": calls[number][0], "input": {}}
            yield {"type": "content_block_start", "index": block_index, "content_block": block}
        delta = {
            "text": {"type": "text_delta", "text": piece},
            "reasoning": {"type": "thinking_delta", "thinking": piece},
            "call": {"type": "input_json_delta", "partial_json": piece},
        }[kind]
        yield {"type": "content_block_delta", "index": block_index, "delta": delta}
        if kind != "call":
            yield {"type": "content_block_stop", "index": block_index}
    for block_index in block_indexes.values():
        yield {"type": "content_block_stop", "index": block_index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if calls else "end_turn"}, "usage": {}}
    yield {"type": "message_stop"}


def response_events(calls: list[Call], steps: list[Step]) -> Iterator[Json]:
    item_indexes: dict[int, int] = {}
    for index, (kind, number, piece) in enumerate(steps):
        if kind == "call" and number not in item_indexes:
            item_indexes[number] = index
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"id_{number}", "name": calls[number][0]}
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
        name = {
            "text": "output_text",
            "reasoning": "reasoning_summary_text",
            "call": "function_call_arguments",
        }[kind]
        yield {
            "type": f"response.{name}.delta",
            "output_index": item_indexes[number] if kind == "call" else index,
            "delta": piece,
        }
    for number, index in item_indexes.items():
        name, arguments = calls[number]
        item = {"type": "function_call", "call_id": f"id_{number}", "name": name, "arguments": json.dumps(arguments)}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {"status": "completed", "output": [], "id": "r", "model": "m"}}


def gemini_chunks(calls: list[Call], steps: list[Step]) -> Iterator[Json]:
    """Send each tool call as a whole in place of its first chunk, because Gemini does not split calls."""
    for kind, number, piece in steps:
        if kind == "call" and piece:
            continue
        part: Json = {"text": piece} | ({"thought": True} if kind == "reasoning" else {})
        if kind == "call":
            part = {"functionCall": {"id": f"id_{number}", "name": calls[number][0], "args": calls[number][1]}}
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
    yield {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {}}


PROVIDERS: Mapping[str, tuple[str, Callable[[list[Call], list[Step]], Iterator[Json]]]] = {
    "openai": ("openai", openai_chunks),
    "openai with late names": ("openai", openai_late_names),
    "openai-responses": ("openai-responses", response_events),
    "anthropic": ("anthropic", anthropic_events),
    "gemini": ("gemini", gemini_chunks),
}


APIS: Mapping[str, tuple[Callable[[], Any], Callable[[bytes], ParsedAnswer]]] = {
    "chat completions": (lambda: Chunks("m"), read_chat),
    "messages": (lambda: MessageEvents("m"), read_messages),
    "responses": (lambda: ResponseEvents(ResponseHead("m", ChatRequest(()))), read_responses),
    "gemini": (lambda: GeminiChunks(model="m", shows_thoughts=True), read_gemini),
}


def transcode(protocol: str, sent: Iterator[Json], events: Any) -> bytes:
    """Decode what a provider sent, and encode it as a stream of the given API."""
    decoder, out = PROTOCOLS[protocol].decoder(), b""
    decoded = [event for value in sent for event in decoder.feed(f"data: {json.dumps(value)}\n\n".encode())]
    for event in [*decoded, *decoder.close()]:
        if isinstance(event, Delta):
            out += events.write_delta(event)
        elif isinstance(event, Finish):
            out += events.write_finish(event)
        else:
            assert isinstance(event, Supplement), event
    return out


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("provider", PROVIDERS)
@given(pieces=mixed_answers())
def test_any_order_of_text_reasoning_and_calls_arrives_as_the_same_blocks(
    provider: str, api: str, pieces: tuple[list[Call], list[Step]]
) -> None:
    calls, steps = pieces
    if not any(kind != "reasoning" for kind, _, _ in steps):
        steps = [*steps, ("text", 0, "end")]
    protocol, send = PROVIDERS[provider]
    make, read = APIS[api]
    text, reasoning, called = read(transcode(protocol, send(calls, steps), make()))
    assert text == joined(piece for kind, _, piece in steps if kind == "text")
    assert reasoning == joined(piece for kind, _, piece in steps if kind == "reasoning")
    order = dict.fromkeys(number for kind, number, _ in steps if kind == "call")
    assert sorted(called, key=str) == sorted(((f"id_{number}", *calls[number]) for number in order), key=str)


def test_interleaved_arguments_stay_with_their_calls() -> None:
    calls = [("tool_0", {}), ("tool_1", {"a": 1}), ("tool_2", {"b": 2})]
    begun = [("call", 0, "{"), ("call", 1, "{"), ("call", 2, ""), ("reasoning", 0, "hm")]
    steps = [*begun, ("call", 0, "}"), ("call", 1, '"a": 1}'), ("call", 2, '{"b": 2}')]
    protocol, send = PROVIDERS["anthropic"]
    make, read = APIS["messages"]
    assert read(transcode(protocol, send(calls, steps), make()))[2] == [
        (f"id_{number}", *call) for number, call in enumerate(calls)
    ]
