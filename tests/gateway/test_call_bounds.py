"""Limits on a call's JSON values, messages, parts and tools.

A refusal names the setting that was exceeded, and other calls are served meanwhile.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from capabilities.fair_slots import FairSlots, heavy_work
from routing_admin.gateway.counts import CROWDED_ITEMS
from routing_admin.platform.server.fair_semaphore import LARGE_BODIES_MIB, bodies, parses
from tests.cast import AgentProgram
from tests.gateway.asgi_caller import Call, Loopback, chat_call, headers
from tests.gateway.plane import chat_body, post

rows = pytest.mark.django_db(databases=["default", "logs"])
written = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

CHAT_APIS = {"/v1/chat/completions": "messages", "/v1/messages": "messages", "/v1/responses": "input"}
COUNTS = {"/v1/messages/count_tokens": "/v1/messages", "/v1/responses/input_tokens": "/v1/responses"}
WORD = {"role": "user", "content": "x"}
PART = {"/v1/responses": {"type": "input_text", "text": "x"}}
TOOL = {"type": "function", "name": "f", "function": {"name": "f"}, "input_schema": {}}


@pytest.fixture
def importer(caller: Callable[..., AgentProgram]) -> AgentProgram:
    return caller("text-agent", "config:write", "artifacts:write", "artifacts:read", "route")


def build_call(path: str, messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "task:planning", "max_tokens": 9, CHAT_APIS[path]: messages, **more}


def refusal(response: Any) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["message"]


@rows
@pytest.mark.parametrize("path", [*CHAT_APIS, *COUNTS])
def test_numbers_of_messages_parts_and_tools_are_limited_by_separate_settings(
    path: str, key: str, settings: Any
) -> None:
    settings.MAX_MESSAGES, settings.MAX_PARTS, settings.MAX_TOOLS = 4, 6, 2
    api_path = COUNTS.get(path, path)
    part = PART.get(api_path, {"type": "text", "text": "x"})
    three_parts = {"role": "user", "content": [part] * 3}
    assert post(key, build_call(api_path, [WORD, WORD, three_parts, three_parts]), path).status_code == 200
    for body, setting in (
        (build_call(api_path, [WORD] * 5), "ROUTING_ADMIN_MAX_MESSAGES"),
        (
            build_call(api_path, [three_parts, three_parts, {"role": "user", "content": [part]}]),
            "ROUTING_ADMIN_MAX_PARTS",
        ),
        (build_call(api_path, [WORD], tools=[TOOL] * 3), "ROUTING_ADMIN_MAX_TOOLS"),
    ):
        status, code, message = refusal(post(key, body, path))
        assert (status, code) == (400, "too_many_items")
        assert setting in message


@rows
def test_nested_parts_and_tool_calls_count_towards_the_part_limit(key: str, settings: Any) -> None:
    settings.MAX_PARTS = 5
    tool_result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}] * 3}
    calls = [{"id": str(n), "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(6)]
    for path, messages in (
        ("/v1/messages", [{"role": "user", "content": [tool_result, tool_result]}]),
        ("/v1/chat/completions", [WORD, {"role": "assistant", "tool_calls": calls}]),
    ):
        assert refusal(post(key, build_call(path, messages), path))[:2] == (400, "too_many_items")


@rows
@pytest.mark.parametrize("path", [*CHAT_APIS, *COUNTS, "/v1/embeddings"])
def test_millions_of_small_json_values_are_refused_compressed_or_not(path: str, key: str) -> None:
    """Millions of empty lists compress to a few KB. The body is refused before any of the lists is created."""
    text = b'{"model":"task:planning","messages":[],"input":[' + b"[]," * 2_000_000 + b"[]]}"
    for body, more in ((text, {}), (gzip.compress(text), {"content-encoding": "gzip"})):
        status, code, message = refusal(post(key, body, path, **more))
        assert (status, code) == (413, "json_too_large")
        assert "ROUTING_ADMIN_MAX_JSON_VALUES" in message


@rows
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_json_values_in_all_tool_arguments_are_counted_together(path: str, key: str) -> None:
    text = json.dumps({"a": [[]] * 15_000})
    calls = [{"id": f"call_{n}", "type": "function", "function": {"name": "f", "arguments": text}} for n in range(9)]
    items = [{"type": "function_call", "call_id": call["id"], "name": "f", "arguments": text} for call in calls]
    messages = items if path == "/v1/responses" else [{"role": "assistant", "tool_calls": calls}]
    status, code, message = refusal(post(key, build_call(path, [WORD, *messages]), path))
    assert (status, code) == (413, "json_too_large")
    assert "ROUTING_ADMIN_MAX_JSON_VALUES" in message


@rows
def test_agents_api_limits_the_number_of_json_values(importer: AgentProgram) -> None:
    text = b'{"services":[' + b"[]," * 200_000 + b"[]]}"
    for path in ("/messages/route", "/uploads", "/llm/send", "/llm/resolve", "/artifacts", "/config/import"):
        response = importer.post(path, text)
        assert (path, response.status_code, response.json()["error"]) == (path, 413, "json_too_large")


@rows
def test_error_for_a_large_invalid_body_names_no_position(key: str) -> None:
    """A large body is parsed in chunks with their own line and column numbers, so its errors name no position."""
    for size, sentence in ((200_000, "(line 1, column 200010)"), (5_000_000, "The body is not valid JSON.")):
        status, code, message = refusal(post(key, b'{"x": ["' + b"a" * size + b'",]}'))
        assert (status, code) == (400, "invalid_json")
        assert sentence in message


@rows
def test_json_depth_is_limited_by_a_setting(key: str, settings: Any) -> None:
    settings.MAX_JSON_DEPTH = 6
    status, code, message = refusal(post(key, chat_body("x", further=[[[[[[[]]]]]]])))
    assert (status, code) == (400, "invalid_json")
    assert "ROUTING_ADMIN_MAX_JSON_DEPTH" in message


@written
async def test_compressed_body_reserves_memory_for_its_decompressed_size(key: str, loopback: Loopback) -> None:
    text = json.dumps({"model": "plain/x", "messages": [WORD], "user": " " * 5_000_000}).encode()
    packed = gzip.compress(text)
    encoding = ((b"content-encoding", b"gzip"),)
    calls = [Call([packed], headers(key, len(packed), encoding)) for _ in range(2)]
    async with loopback.serve():
        assert bodies().take("second", LARGE_BODIES_MIB // 2)
        assert bodies().take("third", LARGE_BODIES_MIB // 2 - 3)
        refused = await calls[0].run()
        for name, count in (("second", LARGE_BODIES_MIB // 2), ("third", LARGE_BODIES_MIB // 2 - 3)):
            bodies().leave(name, count)
        served = await calls[1].run()
    assert (refused.status, refused.error_code) == (503, "overloaded")
    assert served.status == 200
    assert (bodies().in_use, parses().in_use) == (0, 0)


@written
async def test_large_bodies_are_parsed_one_at_a_time_without_delaying_small_bodies(
    key: str, loopback: Loopback
) -> None:
    """While one body is parsed, another body with many values waits.

    Neither a small body nor a large body with few values, such as an image, waits.
    """
    assert parses().take("other")
    large = chat_call(key, "plain", metadata={"words": ["word"] * 50_000})
    async with loopback.serve():
        waiting = asyncio.create_task(large.run())
        while not parses().waiting:
            await asyncio.sleep(0)
        small = await chat_call(key, "plain").run()
        picture = await chat_call(key, "plain", user="x" * 1_500_000).run()
        assert not waiting.done()
        parses().leave("other")
        await waiting
    assert (small.status, picture.status, large.status) == (200, 200, 200)


@written
async def test_call_with_many_messages_runs_in_a_thread(key: str, loopback: Loopback) -> None:
    crowded = chat_call(key, "plain", messages=[WORD] * (CROWDED_ITEMS + 1))
    heavy_work().acquire("other")
    async with loopback.serve():
        waiting = asyncio.create_task(crowded.run())
        while not heavy_work().waiting:
            await asyncio.sleep(0)
        small = await chat_call(key, "plain").run()
        assert not waiting.done()
        heavy_work().release("other")
        await waiting
    assert (small.status, crowded.status) == (200, 200)


def test_threads_process_one_large_body_at_a_time() -> None:
    assert isinstance(heavy_work(), FairSlots)
    assert heavy_work().slots == 1


@rows
def test_import_error_lists_only_the_first_200_problems(importer: AgentProgram) -> None:
    response = importer.post("/config/import", json.dumps({"services": [{"a": 1}] * 1_000}).encode(), dryRun="true")
    details = response.json()["details"]
    assert (response.status_code, len(details)) == (422, 201)
    assert "more problems" in details[-1]["message"]
    assert len(response.content) < 200_000
