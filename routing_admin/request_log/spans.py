"""Export one trace per request: a span for the request, and a child span for each candidate that was called.

Names follow OpenTelemetry and its conventions for generative AI; our own names start with `routing_admin`. Spans
contain no request text, no files and no keys. Only this module imports OpenTelemetry's SDK.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import OK, Attempt, SkipReason
from routing_admin.request_log.counting import metric_operation
from routing_admin.request_log.entries import Entry, find_answering

log = logging.getLogger("routing_admin.request_log.tracing")

OWN = "routing_admin."
SKIPS = frozenset(SkipReason)
DEFAULT_PORTS = {"https": 443, "http": 80}
Attributes = Mapping[str, Any]


class QuietExporter(SpanExporter):
    """Exporter that logs once when the collector becomes unavailable and once when it is back."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:  # The exporter's transport may raise any exception.
            result = SpanExportResult.FAILURE
        away = result is not SpanExportResult.SUCCESS
        if away != self._away:
            self._away = away
            log.warning(
                "the collector takes no traces; they are lost until it does" if away else "traces are sent again"
            )
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class SpanWriter:
    """Converts log entries to spans and queues them for the collector; if the queue is full, new spans are dropped."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        # Silence OpenTelemetry's own logger, because it logs each lost batch.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "routing_admin"}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(QuietExporter(exporter or OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer("routing_admin")
        self._propagator = TraceContextTextMapPropagator()

    def write(self, entry: Entry) -> None:
        """Queue the trace of a request, unless the sampler or the caller's own sampling decision excludes it."""
        facts = entry.facts
        request = self._tracer.start_span(
            f"POST {facts.path}" if facts.path else facts.surface,
            self._propagator.extract(facts.trace),
            SpanKind.SERVER,
            dict(_of_request(entry)),
            start_time=_moment(entry, 0.0),
        )
        if request.is_recording():
            context = set_span_in_context(request, Context())
            for at, attempt in enumerate(entry.attempts):
                if attempt.outcome in SKIPS:
                    _add_skip(request, entry, at, attempt)
                else:
                    self._write_attempt(context, entry, at, attempt)
            # A response that failed after it had started also has status 200.
            if facts.status is None or facts.status >= 500 or (facts.outcome != OK and facts.status == 200):
                request.set_status(Status(StatusCode.ERROR))
        request.end(_moment(entry, facts.duration_ms))

    def close(self) -> None:
        self._provider.shutdown()

    def _write_attempt(self, context: Context, entry: Entry, at: int, attempt: Attempt) -> None:
        operation = metric_operation(entry.facts.surface)
        span = self._tracer.start_span(
            f"{operation} {attempt.model}".strip(),
            context,
            SpanKind.CLIENT,
            dict(_of_attempt(entry, at, attempt)),
            start_time=_moment(entry, attempt.started_ms),
        )
        for call in attempt.tries:
            if call.outcome != OK:
                attributes: dict[str, Any] = {"error.type": call.outcome, OWN + "duration_ms": call.duration_ms}
                if call.status_code is not None:
                    attributes["http.response.status_code"] = call.status_code
                span.add_event(OWN + "try_failed", attributes, _moment(entry, call.started_ms + call.duration_ms))
        if attempt.outcome != OK:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_moment(entry, attempt.started_ms + attempt.duration_ms))


def _of_request(entry: Entry) -> Iterator[tuple[str, Any]]:
    facts = entry.facts
    yield "http.request.method", "POST"
    named = {
        "http.route": facts.path,
        "gen_ai.agent.name": facts.agent,
        "gen_ai.request.model": facts.asked_model,
        OWN + "surface": facts.surface,
        OWN + "route": facts.task_type,
        "error.type": "" if facts.outcome == OK else facts.outcome,
    }
    yield from ((name, value) for name, value in named.items() if value)
    yield OWN + "request.id", facts.id
    yield OWN + "attempts", len(entry.attempts)
    if facts.status is not None:
        yield "http.response.status_code", facts.status


def _of_attempt(entry: Entry, at: int, attempt: Attempt) -> Iterator[tuple[str, Any]]:
    facts, answers = entry.facts, find_answering(entry) is attempt
    yield "gen_ai.operation.name", metric_operation(facts.surface)
    yield "gen_ai.provider.name", attempt.provider
    yield "gen_ai.request.model", attempt.model
    yield "gen_ai.request.stream", facts.stream
    yield from _server_attributes(attempt.provider)
    yield OWN + "fallback.position", at
    yield OWN + "tries", len(attempt.tries)
    if attempt.outcome != OK:
        yield "error.type", attempt.outcome
    if attempt.status_code is not None:
        yield "http.response.status_code", attempt.status_code
    if not answers:
        return
    counts = {
        "gen_ai.usage.input_tokens": facts.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": facts.usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": facts.usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": facts.usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": facts.usage.reasoning_tokens,
    }
    yield from ((name, count) for name, count in counts.items() if count is not None)
    if facts.answered_model:
        yield "gen_ai.response.model", facts.answered_model
    if facts.finish_reason:
        yield "gen_ai.response.finish_reasons", [facts.finish_reason]
    if facts.first_content_ms is not None:
        yield "gen_ai.response.time_to_first_chunk", (facts.first_content_ms - attempt.started_ms) / 1000


def _server_attributes(provider: str) -> Iterator[tuple[str, Any]]:
    found = snapshot.current().configuration.provider(provider)
    parts = urlsplit(found.endpoint) if found is not None else None
    if parts is not None and parts.hostname:
        yield "server.address", parts.hostname
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
        if port is not None:
            yield "server.port", port


def _add_skip(request: Span, entry: Entry, at: int, attempt: Attempt) -> None:
    attributes: dict[str, Any] = {
        "gen_ai.provider.name": attempt.provider,
        "gen_ai.request.model": attempt.model,
        OWN + "fallback.position": at,
        OWN + "skip.reason": attempt.outcome,
    }
    request.add_event(OWN + "candidate_skipped", attributes, _moment(entry, attempt.started_ms))


def _moment(entry: Entry, milliseconds: float) -> int:
    moment = entry.facts.began + timedelta(milliseconds=max(milliseconds, 0.0))
    # Span times are in nanoseconds since 1970.
    return int(moment.timestamp() * 1_000_000) * 1000
