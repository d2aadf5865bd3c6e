"""Readers of the streams of each chat API, which check the API's rules for streams on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Said = tuple[str, str, list[tuple[str, str, Json]]]
"""Text, reasoning, and calls with id, name and input."""


def events_in(stream: bytes) -> Iterator[Json]:
    for block in stream.decode().strip().split("\n\n"):
        data = block.split("data: ", 1)[1]
        if data != "[DONE]":
            yield json.loads(data)


def read_chat(stream: bytes) -> Said:
    text, reasoning, calls = "", "", dict[int, list[str]]()
    for chunk in events_in(stream):
        delta = chunk["choices"][0]["delta"]
        text, reasoning = text + (delta.get("content") or ""), reasoning + (delta.get("reasoning_content") or "")
        for called in delta.get("tool_calls", ()):
            call = calls.setdefault(called["index"], ["", "", ""])
            call[0] += called.get("id") or ""
            call[1] += called["function"].get("name") or ""
            call[2] += called["function"]["arguments"]
    return text, reasoning, [(identity, name, json.loads(rest or "{}")) for identity, name, rest in calls.values()]


def read_gemini(stream: bytes) -> Said:
    """Read consecutive parts with each call whole in one part; only the last chunk has a finish reason."""
    chunks = [json.loads(each.removeprefix(b"data: ")) for each in stream.split(b"\r\n\r\n")[:-1]]
    candidates = [each["candidates"][0] for each in chunks]
    assert ["finishReason" in each for each in candidates] == [False] * (len(candidates) - 1) + [True]
    parts = [part for each in candidates for part in each["content"]["parts"]]
    words = {
        thought: "".join(part.get("text", "") for part in parts if part.get("thought", False) is thought)
        for thought in (False, True)
    }
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    return words[False], words[True], [(each["id"], each["name"], each["args"]) for each in called]


def read_messages(stream: bytes) -> Said:
    """Read numbered blocks that start and stop one after another, each of a single kind."""
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
    said = {
        kind: "".join(piece for each in blocks if each["type"] == kind for piece in each["pieces"]) for kind in fields
    }
    called = [each for each in blocks if each["type"] == "tool_use"]
    calls = [(each["id"], each["name"], json.loads("".join(each["pieces"]) or "{}")) for each in called]
    return said["text"], said["thinking"], calls


def read_responses(stream: bytes) -> Said:
    """Read items that are added, extended and done. A done item repeats its deltas, and the response has all items."""
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
            came = opened.pop(item["id"])
            done.append(item)
            if item["type"] == "function_call":
                assert came == item["arguments"]
                calls.append((item["call_id"], item["name"], json.loads(came or "{}")))
            elif item["type"] == "message":
                assert came == item["content"][0]["text"]
                text += came
            else:
                assert came == item["summary"][0]["text"]
                reasoning += came
        elif kind == "response.completed":
            assert sorted(map(str, event["response"]["output"])) == sorted(map(str, done))
    assert not opened
    return text, reasoning, calls
