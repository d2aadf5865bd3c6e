"""A stream that waits for its content begins with comments, and ends like every stream of its API.

This is true whatever happens in the fallback chain. The provider responds when the test tells it to, so nothing in this
module depends on timing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from capabilities.core.services.agent_limits import Meter
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.gateway import keep_alive
from routing_admin.limits.uses import find_uses
from routing_admin.models import Candidate, IdempotencyRecord, TaskRoute
from routing_admin.platform.server.draining import draining
from tests.cast import limit_agent
from tests.gateway.asgi_caller import Call, Loopback, chat_call
from tests.gateway.plane import logged

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("patient_calls", "returned_quotas"),
]
SOON = 0.001
"""Seconds after which a stream on these routes begins early, that is, before any content."""
ID = (b"x-request-id", b"the-call")
HELLO = [{"role": "user", "content": "hello"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HELLO},
    "/v1/messages": {"messages": HELLO, "max_tokens": 10_000},
    "/v1/responses": {"input": "hello"},
    "/v1/completions": {"prompt": "hello"},
}
GEMINI = {"contents": [{"parts": [{"text": "hello"}]}]}
EACH_API = pytest.mark.parametrize("path", BODIES)


@pytest.fixture
def loopback(loopback: Loopback) -> Loopback:
    """Create providers and routes.

    The first candidate of `slow` responds when a test tells it to, its second candidate immediately. `alone` has only
    the first candidate. `never` does not begin a stream early.
    """
    add_route("slow", "silent", "stream", seconds=SOON)
    add_route("alone", "silent", seconds=SOON)
    add_route("never", "silent", seconds=0)
    snapshot.refresh()
    return loopback


def add_route(task_type: str, *providers: str, seconds: float) -> None:
    route = TaskRoute.objects.create(task_type=task_type, position=99, retries=0, keep_alive_seconds=seconds)
    for position, name in enumerate(providers, start=1):
        Candidate.objects.create(route=route, position=position, provider=Provider.objects.get(name=name))


def call_to(route: str, key: str, *more: tuple[bytes, bytes], path: str = "/v1/chat/completions", **body: Any) -> Call:
    request = {"model": f"task:{route}", "stream": True, **BODIES[path], **body}
    data = json.dumps(request).encode()
    call = chat_call(key, "silent", *more)
    call.pieces, call.path = [data], path
    # Leave out Content-Length, which `chat_call` has set for the body that is replaced here.
    call.headers = [(name, value) for name, value in call.headers if name != b"content-length"]
    return call


async def begin(call: Call) -> asyncio.Task[Call]:
    running = asyncio.create_task(call.run())
    await call.begun.wait()
    return running


async def answer_next(loopback: Loopback, name: str) -> None:
    await loopback.requested.wait()
    loopback.unanswered[-1].play(name)


def read_comments(call: Call) -> dict[str, str]:
    lines = [line[2:] for line in call.answer.decode().split("\n") if line.startswith(": x-") or "retry" in line[:10]]
    return dict(line.split(": ", 1) for line in lines)


def read_events(call: Call) -> list[Any]:
    """Return the events' data as a server-sent events parser sees it, excluding pings."""
    lines = call.answer.decode().split("\n")
    assert all(not line or line.startswith((":", "data: ", "event: ")) for line in lines)
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line != "data: [DONE]"]
    return [event for event in data if event.get("type") != "ping"]


async def log_row(name: str = "the-call") -> Any:
    return await asyncio.to_thread(logged, name)


@EACH_API
async def test_stream_without_content_begins_with_comments(key, loopback, path):
    call, prompt = call_to("alone", key, ID, path=path), call_to("never", key, path=path)
    async with loopback.serve():
        running = await begin(call)
        early = call.answer
        await answer_next(loopback, "stream")
        await running
        loopback.requested.clear()
        prompt_run = asyncio.create_task(prompt.run())
        await answer_next(loopback, "stream")
        await prompt_run
    assert early in (keep_alive.COMMENT, b'event: ping\ndata: {"type": "ping"}\n\n')
    assert (early == keep_alive.COMMENT) == (path != "/v1/messages")
    assert call.status == 200
    assert call.answer_headers["content-type"] == "text/event-stream"
    assert call.answer_headers["x-accel-buffering"] == "no"
    assert call.answer_headers["x-request-id"] == "the-call"
    late_headers = {name: value for name, value in prompt.answer_headers.items() if name not in call.answer_headers}
    assert read_comments(call) == late_headers
    assert late_headers["x-routing-provider"] == "silent"
    assert [event.keys() for event in read_events(call)] == [event.keys() for event in read_events(prompt)]
    row = await log_row()
    assert (row.outcome, row.status) == ("ok", 200)
    assert row.answer["keepAliveMs"] > 0
    assert b": x-routing" not in prompt.answer


@EACH_API
async def test_fallback_continues_after_keep_alive_comments(key, loopback, path):
    call = call_to("slow", key, ID, path=path)
    async with loopback.serve():
        running = await begin(call)
        await answer_next(loopback, "fail")
        await running
    assert (read_comments(call)["x-routing-provider"], read_comments(call)["x-routing-attempts"]) == ("stream", "2")
    assert "word 199" in call.answer.decode()
    assert "error" not in {name for event in read_events(call) for name, value in event.items() if value}


@pytest.mark.parametrize("ending", ["stream", "fail"])
@pytest.mark.parametrize("form", ["events", "list"])
async def test_gemini_stream_begins_with_blank_lines(key, loopback, form, ending):
    """Google's client parses every non-empty line as JSON, so blank lines are sent instead of comments.

    In a JSON list, they are white space.
    """
    call = call_to("alone", key)
    call.path = "/v1beta/models/task:alone:streamGenerateContent"
    call.query, call.pieces = b"alt=sse" if form == "events" else b"", [json.dumps(GEMINI).encode()]
    async with loopback.serve():
        running = await begin(call)
        assert call.answer == keep_alive.BLANK
        await answer_next(loopback, ending)
        await running
    data = call.answer.lstrip().removeprefix(b"data: ").split(b"\r\n\r\ndata: ")
    chunks = json.loads(call.answer) if form == "list" else [json.loads(event) for event in data]
    assert call.answer_headers["content-type"] == ("application/json" if form == "list" else "text/event-stream")
    assert ("error" in chunks[-1]) == (ending == "fail")
    assert ending == "fail" or chunks[-1]["candidates"][0]["finishReason"] == "STOP"


@pytest.mark.parametrize("ending", ["stream", "fail"])
async def test_gemini_stream_of_several_candidates_begins_early_as_one_json_list(key, loopback, ending):
    await asyncio.to_thread(TaskRoute.objects.filter(task_type="alone").update, allow_n=True)
    await asyncio.to_thread(snapshot.refresh)
    call = call_to("alone", key)
    call.path = "/v1beta/models/task:alone:streamGenerateContent"
    call.pieces = [json.dumps({**GEMINI, "generationConfig": {"candidateCount": 2}}).encode()]
    async with loopback.serve():
        running = await begin(call)
        while len(loopback.unanswered) < 2:
            loopback.requested.clear()
            await loopback.requested.wait()
        for connection, name in zip(loopback.unanswered, ("stream", ending), strict=True):
            connection.play(name)
        await running
    *chunks, last = json.loads(call.answer)
    assert ("error" in last, bool(chunks)) == ((True, False) if ending == "fail" else (False, True))
    assert {chunk["candidates"][0]["index"] for chunk in chunks} == (set() if ending == "fail" else {0, 1})


ERRORS: dict[str, Callable[[Any], str]] = {
    "/v1/chat/completions": lambda event: event["error"]["code"],
    "/v1/messages": lambda event: f"{event['type']} {event['error']['type']}",
    "/v1/responses": lambda event: f"{event['type']} {event['response']['error']['code']}",
    "/v1/completions": lambda event: event["error"]["code"],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/chat/completions", "all_providers_failed"),
        ("/v1/messages", "error api_error"),
        ("/v1/responses", "response.failed server_error"),
        ("/v1/completions", "all_providers_failed"),
    ],
)
async def test_early_stream_of_a_failed_chain_ends_with_an_error_event(key, loopback, path, expected):
    call = call_to("alone", key, ID, path=path)
    async with loopback.serve():
        running = await begin(call)
        await answer_next(loopback, "fail")
        await running
    assert (call.status, ERRORS[path](read_events(call)[-1])) == (200, expected)
    assert b"[DONE]" not in call.answer
    assert read_comments(call) == {"x-routing-attempts": "1", "x-should-retry": "false"}
    assert call.sent[-1] == {"type": "http.response.body", "body": b""}
    row = await log_row()
    assert (row.outcome, row.status) == ("all_providers_failed", 200)


async def test_comments_are_repeated_until_the_first_content(key, loopback, monkeypatch):
    """Each comment is sent as a separate piece, so that a proxy forwards it immediately."""
    monkeypatch.setattr(keep_alive, "REPEAT_SECONDS", SOON)
    call = call_to("alone", key)
    async with loopback.serve():
        running = await begin(call)
        while call.answer.count(keep_alive.COMMENT) < 3:
            call.begun.clear()
            await call.begun.wait()
        await answer_next(loopback, "stream")
        await running
    assert keep_alive.COMMENT not in call.answer.partition(b"data: ")[2]


@pytest.mark.parametrize(("model", "installation"), [("task:never", SOON), ("silent/bench-model", 0)])
async def test_stream_never_begins_early_if_keep_alive_is_zero_seconds(key, loopback, settings, model, installation):
    settings.KEEP_ALIVE_SECONDS = installation
    call = call_to("", key, ID, model=model)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await answer_next(loopback, "stream")
        await running
    assert call.answer_headers["x-routing-provider"] == "silent"
    assert call.answer.startswith(b"data: ")
    assert "keepAliveMs" not in (await log_row()).answer


async def test_installations_keep_alive_setting_applies_without_a_route(key, loopback, settings):
    settings.KEEP_ALIVE_SECONDS = SOON
    call = call_to("", key, model="silent/bench-model")
    async with loopback.serve():
        running = await begin(call)
        await answer_next(loopback, "stream")
        await running
    assert read_comments(call)["x-routing-provider"] == "silent"


async def test_disconnect_from_an_early_stream_ends_the_fallback_chain(key, loopback):
    call = call_to("slow", key, ID)
    async with loopback.serve():
        running = await begin(call)
        await loopback.requested.wait()
        call.disconnected.set()
        await running
        await loopback.closed.wait()
    assert b"data" not in call.answer
    row = await log_row()
    assert (row.outcome, row.status) == ("client_cancelled", 499)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_stopping_process_ends_an_early_stream_with_an_error_event(key, loopback):
    call = call_to("alone", key, ID)
    async with loopback.serve():
        running = await begin(call)
        await loopback.requested.wait()
        draining().give_up()
        await running
    assert read_events(call)[-1]["error"]["code"] == "server_draining"
    assert read_comments(call)["x-should-retry"] == "true"
    assert ((await log_row()).outcome, (await log_row()).status) == ("server_draining", 200)


async def test_exception_in_an_early_stream_is_an_error_event(key, loopback, monkeypatch):
    monkeypatch.setattr("routing_admin.gateway.answers.AnswerStream", lambda *_: 1 / 0)
    call = call_to("alone", key, ID)
    async with loopback.serve():
        running = await begin(call)
        await answer_next(loopback, "stream")
        await running
    assert read_events(call)[-1]["error"]["type"] == "upstream_error"
    assert (await log_row()).status == 200


@pytest.mark.parametrize("ending", ["stream", "fail"])
async def test_only_a_complete_early_stream_stores_its_idempotency_key(key, loopback, ending):
    idempotency_key = (b"idempotency-key", b"k")
    call = call_to("alone", key, idempotency_key)
    async with loopback.serve():
        running = await begin(call)
        await answer_next(loopback, ending)
        await running
        stored = await asyncio.to_thread(IdempotencyRecord.objects.count)
        assert stored == (ending == "stream")
        if stored:
            again = await call_to("alone", key, idempotency_key).run()
            assert again.answer_headers["x-routing-replayed"] == "true"
            assert again.answer_headers["x-routing-provider"] == "silent"
            assert read_events(again) == read_events(call)
            assert b": " not in again.answer.partition(b"data")[0]


@pytest.mark.parametrize(("ending", "tokens"), [("fail", 0), ("stream", None)])
async def test_early_stream_settles_its_limits_once(key, loopback, within_one_minute, ending, tokens):
    await asyncio.to_thread(limit_agent, tokensPerDay=10**6, requestsPerMinute=10**6, inFlight=5)
    counts = []
    async with loopback.serve():
        for route in ("alone", "never"):
            call = call_to(route, key)
            loopback.requested.clear()
            running = await begin(call) if route == "alone" else asyncio.create_task(call.run())
            await answer_next(loopback, ending)
            await running
            uses = await asyncio.to_thread(find_uses, ["agent:text-agent"])
            counts.append({meter: amount for (_, meter), amount in uses.items()})
    early, both = counts
    assert both[Meter.TOKENS_PER_DAY] == 2 * early[Meter.TOKENS_PER_DAY]
    assert tokens is None or early[Meter.TOKENS_PER_DAY] == tokens
    assert (early[Meter.REQUESTS_PER_MINUTE], both[Meter.REQUESTS_PER_MINUTE]) == (1, 2)
    assert not both.get(Meter.IN_FLIGHT)


async def test_stream_answered_in_time_creates_no_keep_alive_task(key, loopback, settings):
    keep_alive_tasks: list[int] = []
    loop = asyncio.get_running_loop()
    async with loopback.serve():
        for settings.KEEP_ALIVE_SECONDS in (0, 3600):
            tasks: list[Any] = []

            def count(loop: Any, work: Any, tasks: list[Any] = tasks, **options: Any) -> Any:
                tasks.append(work)
                return asyncio.Task(work, loop=loop, **options)

            loop.set_task_factory(count)
            call = await chat_call(key, "stream", stream=True).run()
            loop.set_task_factory(None)
            assert b": " not in call.answer.partition(b"data")[0]
            keep_alive_tasks.append(sum("keep_alive" in work.cr_code.co_filename for work in tasks))
    assert keep_alive_tasks == [0, 0]
