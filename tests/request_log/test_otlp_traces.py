"""Traces as a real OTLP/HTTP collector receives them: one per request, with a child span for each candidate."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from capabilities.actors import SYSTEM
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.console.routes import actions
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import TaskRoute
from routing_admin.request_log.journal import journal
from routing_admin.request_log.tracing import Tracing, is_wanted, tracing
from tests.bench.upstream import NAME
from tests.cast import create_key
from tests.gateway.asgi_caller import Call, Loopback, chat_call

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ROOT = Path(__file__).resolve().parents[2]
# Numbers that OTLP assigns to the span kinds SERVER and CLIENT and to the status code ERROR.
SERVER, CLIENT, ERROR = 2, 3, 2
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = PARENT[:-1] + "0"


class Collector(ThreadingHTTPServer):
    """An OTLP collector that keeps the spans that it has received."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TraceHandler)
        self.received: list[Any] = []
        self.resources: list[dict[str, Any]] = []

    def store_spans(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(attribute_values(resource.resource))
            self.received += [span for scope in resource.scope_spans for span in scope.spans]


class TraceHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.store_spans(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def attribute_values(thing: Any) -> dict[str, Any]:
    """Return the attributes of a span, event or resource as Python values."""
    attributes = {}
    for attribute in thing.attributes:
        kind = attribute.value.WhichOneof("value")
        value = getattr(attribute.value, kind)
        attributes[attribute.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return attributes


@pytest.fixture
def key(loopback: Loopback) -> str:
    return create_key("vision-agent")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Start a collector, and send this process's spans to it."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    tracing().start()
    try:
        yield server
    finally:
        tracing().stop()
        server.shutdown()
        server.server_close()


def spans(collector: Collector) -> tuple[Any, list[Any]]:
    """Send the remaining spans. Return the only request's span and its attempts' spans."""
    journal().flush()
    tracing().stop()
    (request,) = [span for span in collector.received if span.kind == SERVER]
    attempts = [span for span in collector.received if span.kind == CLIENT]
    assert {span.trace_id for span in attempts} <= {request.trace_id}
    assert {span.parent_span_id for span in attempts} <= {request.span_id}
    return request, attempts


async def run_call(loopback: Loopback, call: Call) -> Call:
    async with loopback.serve():
        return await call.run()


async def test_call_is_a_trace_with_a_span_per_candidate(loopback: Loopback, key: str, collector: Collector):
    call = await run_call(loopback, chat_call(key, "plain"))
    request, (attempt,) = await asyncio.to_thread(spans, collector)
    request_values = attribute_values(request)
    assert request.name == "POST /v1/chat/completions"
    assert request.parent_span_id == b""
    assert (request_values["http.route"], request_values["http.response.status_code"]) == ("/v1/chat/completions", 200)
    assert request_values["routing_admin.request.id"] == call.answer_headers["x-request-id"]
    assert request_values["gen_ai.agent.name"] == "vision-agent"
    attempt_values = attribute_values(attempt)
    assert attempt.name == f"chat {NAME}"
    assert (attempt_values["gen_ai.operation.name"], attempt_values["gen_ai.provider.name"]) == ("chat", "plain")
    assert (attempt_values["gen_ai.request.model"], attempt_values["gen_ai.response.model"]) == (NAME, NAME)
    assert (attempt_values["gen_ai.usage.input_tokens"], attempt_values["gen_ai.usage.output_tokens"]) == (11, 7)
    assert (attempt_values["server.address"], attempt_values["routing_admin.fallback.position"]) == ("127.0.0.1", 0)
    assert request.start_time_unix_nano <= attempt.start_time_unix_nano < attempt.end_time_unix_nano
    assert collector.resources[0]["service.name"] == "routing_admin"


async def test_trace_contains_no_message_text_and_no_key(loopback: Loopback, key: str, collector: Collector):
    await run_call(loopback, chat_call(key, "plain"))
    request, attempts = await asyncio.to_thread(spans, collector)
    spans_text = "".join(str(span) for span in (request, *attempts))
    assert "hello" not in spans_text
    assert key not in spans_text


async def test_span_of_a_streamed_call_has_the_time_to_first_chunk(loopback: Loopback, key: str, collector: Collector):
    """The time to the first chunk is in seconds, measured from the start of the successful call.

    The span ends with the stream.
    """
    await run_call(loopback, chat_call(key, "stream", stream=True))
    _request, (attempt,) = await asyncio.to_thread(spans, collector)
    attributes, duration = attribute_values(attempt), attempt.end_time_unix_nano - attempt.start_time_unix_nano
    assert attributes["gen_ai.request.stream"] is True
    assert 0 < attributes["gen_ai.response.time_to_first_chunk"] * 1e9 <= duration
    assert attributes["gen_ai.response.finish_reasons"] == ["stop"]


def make_chain() -> None:
    """Create a route with three candidates: a disabled one, an unreachable one and a working one."""
    for name, port, enabled in (("off", 8, False), ("away", 9, True)):
        endpoint = f"http://127.0.0.1:{port}/v1"
        Provider.objects.create(
            name=name, endpoint=endpoint, default_model="m", protocol="openai", key_source="none", enabled=enabled
        )
    chain = [CandidateSpec("off", "m"), CandidateSpec("away", "m"), CandidateSpec("plain", NAME)]
    actions.save_route(SYSTEM, TaskRoute(task_type="traced", retries=1), chain)
    snapshot.refresh()


async def test_call_that_fell_back_has_a_span_for_each_candidate(loopback: Loopback, key: str, collector: Collector):
    await asyncio.to_thread(make_chain)
    call = chat_call(key, "plain")
    call.pieces = [call.pieces[0].replace(f"plain/{NAME}".encode(), b"task:traced")]
    call.headers = [(name, value) for name, value in call.headers if name != b"content-length"]
    call.headers = [*call.headers, (b"content-length", str(len(call.pieces[0])).encode())]
    assert (await run_call(loopback, call)).status == 200
    request, attempts = await asyncio.to_thread(spans, collector)
    unreachable, answered = sorted(attempts, key=lambda span: span.start_time_unix_nano)
    assert (attribute_values(unreachable)["error.type"], unreachable.status.code) == ("connect_refused", ERROR)
    assert {event.name for event in unreachable.events} == {"routing_admin.try_failed"}
    assert attribute_values(answered)["routing_admin.fallback.position"] == 2
    assert answered.status.code != ERROR
    (skip,) = request.events
    assert attribute_values(skip)["gen_ai.provider.name"] == "off"
    assert attribute_values(skip)["routing_admin.skip.reason"] == "skipped_disabled"
    assert attribute_values(request)["routing_admin.route"] == "traced"


async def test_refused_call_is_a_trace_without_candidate_spans(loopback: Loopback, key: str, collector: Collector):
    call = await run_call(loopback, chat_call(key, "unknown-model"))
    request, attempts = await asyncio.to_thread(spans, collector)
    assert attempts == []
    attributes = attribute_values(request)
    assert (attributes["http.response.status_code"], attributes["error.type"]) == (404, "model_not_found")
    assert attributes["routing_admin.request.id"] == call.answer_headers["x-request-id"]


async def test_trace_of_the_caller_is_continued(loopback: Loopback, key: str, collector: Collector):
    await run_call(loopback, chat_call(key, "plain", (b"traceparent", PARENT.encode()), (b"tracestate", b"a=1")))
    request, _ = await asyncio.to_thread(spans, collector)
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert request.trace_state == "a=1"


async def test_call_of_a_caller_that_does_not_sample_is_not_traced(loopback: Loopback, key: str, collector: Collector):
    """OpenTelemetry's default sampler follows the sampling flag that the caller sends."""
    await run_call(loopback, chat_call(key, "plain", (b"traceparent", UNSAMPLED.encode())))
    await asyncio.to_thread(journal().flush)
    await asyncio.to_thread(tracing().stop)
    assert collector.received == []


async def test_sampler_from_the_environment_is_respected(
    loopback: Loopback, key: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    await asyncio.to_thread(tracing().stop)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    tracing().start()
    await run_call(loopback, chat_call(key, "plain"))
    await asyncio.to_thread(journal().flush)
    await asyncio.to_thread(tracing().stop)
    assert collector.received == []


async def test_unreachable_collector_fails_no_call_and_is_logged_in_one_line(
    loopback: Loopback, key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    # Nothing listens on port 9.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    tracing().start()
    with caplog.at_level(logging.WARNING):
        async with loopback.serve():
            calls = [await chat_call(key, "plain").run() for _ in range(3)]
        await asyncio.to_thread(journal().flush)
        await asyncio.to_thread(tracing().stop)
    assert [call.status for call in calls] == [200] * 3
    messages = [record.getMessage() for record in caplog.records if "trace" in record.getMessage()]
    assert messages == ["the collector takes no traces; they are lost until it does"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_variables_of_opentelemetry_enable_tracing(environment: dict[str, str], expected: bool):
    assert is_wanted(environment) is expected


OFF = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
import routing_admin.asgi
from routing_admin.request_log.tracing import tracing
tracing().start()
assert tracing().writer is None
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk.trace", "opentelemetry.exporter"))]
assert "routing_admin.request_log.spans" not in sys.modules
"""


def test_disabled_tracing_imports_no_opentelemetry_package(tmp_path: Path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment["ROUTING_ADMIN_DATA_DIR"] = str(tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", OFF], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_missing_package_is_logged_in_one_line_with_the_requirements_file(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.delitem(sys.modules, "routing_admin.request_log.spans", raising=False)
    own_tracing = Tracing()
    own_tracing.start({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"})
    assert own_tracing.writer is None
    assert "requirements-extras.txt" in caplog.text
    assert len(caplog.records) == 1
