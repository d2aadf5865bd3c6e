"""Stream readers for each chat API. While reading, they check the API's rules for streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
ParsedAnswer = tuple[str, str, list[tuple[str, str, Json]]]
"""A parsed answer: its text, its reasoning, and its tool calls with id, name and input."""


def events_in(stream: bytes) -> Iterator[Json]:
    for block in stream.decode().strip().split("\n\n"):
        data = block.split("data: ", 1)[1]
        if data != "[DONE]":
            yield json.loads(data)


def read_chat(stream: bytes) -> ParsedAnswer:
    text, reasoning, calls = "", "", dict[int, list[str]]()
    for chunk in events_in(stream):
        delta = chunk["choices"][0]["delta"]
        text, reasoning = text + (delta.get("content") or ""), reasoning + (delta.get("reasoning_content") or "")
        for piece in delta.get("tool_calls", ()):
            call = calls.setdefault(piece["index"], ["", "", ""])
            call[0] += piece.get("id") or ""
            call[1] += piece["function"].get("name") or ""
            call[2] += piece["function"]["arguments"]
    return text, reasoning, [(identity, name, json.loads(rest or "{}")) for identity, name, rest in calls.values()]


def read_gemini(stream: bytes) -> ParsedAnswer:
    """Read a Gemini stream. Each tool call must be in one part, and only the last chunk may have a finish reason."""
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in stream.split(b"\r\n\r\n")[:-1]]
    candidates = [chunk["candidates"][0] for chunk in chunks]
    assert ["finishReason" in candidate for candidate in candidates] == [False] * (len(candidates) - 1) + [True]
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    texts = {
        thought: "".join(part.get("text", "") for part in parts if part.get("thought", False) is thought)
        for thought in (False, True)
    }
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return texts[False], texts[True], [(call["id"], call["name"], call["args"]) for call in calls]


def read_messages(stream: bytes) -> ParsedAnswer:
    """Read a Messages stream. Its blocks must start and stop one after another, each with a single kind of content."""
    blocks, is_open = list[Json](), False
    fields = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}
    for event in events_in(stream):
        kind = event["type"]
        if kind == "content_block_start":
            assert (event["index"], is_open) == (len(blocks), False)
            blocks.append({**event["content_block"], "pieces": []})
            is_open = True
        elif kind in ("content_block_delta", "content_block_stop"):
            assert (event["index"], is_open) == (len(blocks) - 1, True)
            is_open = kind == "content_block_delta"
            if is_open and event["delta"]["type"] != "signature_delta":
                assert event["delta"]["type"] == fields[blocks[-1]["type"]]
                blocks[-1]["pieces"] += [value for name, value in event["delta"].items() if name != "type"]
    assert not is_open
    texts = {
        kind: "".join(piece for block in blocks if block["type"] == kind for piece in block["pieces"])
        for kind in fields
    }
    tool_blocks = [block for block in blocks if block["type"] == "tool_use"]
    calls = [(block["id"], block["name"], json.loads("".join(block["pieces"]) or "{}")) for block in tool_blocks]
    return texts["text"], texts["thinking"], calls


def read_responses(stream: bytes) -> ParsedAnswer:
    """Read a Responses stream: items are added, extended and completed.

    A completed item must repeat its deltas, and the completed response must repeat all items.
    """
    opened: dict[str, str] = {}
    text, reasoning, calls, done = "", "", list[tuple[str, str, Json]](), list[Json]()
    for number, event in enumerate(events_in(stream)):
        assert event["sequence_number"] == number
        kind, item = event["type"], event.get("item", {})
        if kind == "response.output_item.added":
            opened[item["id"]] = ""
        elif kind.endswith(".delta"):
            opened[event["item_id"]] += event["delta"]
        elif kind == "response.output_item.done":
            received = opened.pop(item["id"])
            done.append(item)
            if item["type"] == "function_call":
                assert received == item["arguments"]
                calls.append((item["call_id"], item["name"], json.loads(received or "{}")))
            elif item["type"] == "message":
                assert received == item["content"][0]["text"]
                text += received
            else:
                assert received == item["summary"][0]["text"]
                reasoning += received
        elif kind == "response.completed":
            assert sorted(map(str, event["response"]["output"])) == sorted(map(str, done))
    assert not opened
    return text, reasoning, calls
