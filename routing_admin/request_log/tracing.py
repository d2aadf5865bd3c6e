"""Traces for an OpenTelemetry collector: off until its own environment variables name one, and never in a call's way.

What is exported is made of entries that the journal has taken, behind the answers. The package is an extra: it is
imported where traces are asked for, and where it is missing one line says how to get it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from capabilities.runtime import owned
from routing_admin.request_log.entries import Entry

if TYPE_CHECKING:
    from routing_admin.request_log.spans import SpanWriter

log = logging.getLogger("routing_admin.request_log.tracing")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
FLUSH_SECONDS = 5.0
"""How long the end of a process waits for a collector that does not answer."""
MISSING = (
    "no traces are sent: %s is not installed; `pip install -r requirements-extras.txt` brings it, or unset "
    "OTEL_EXPORTER_OTLP_ENDPOINT"
)


class Tracing:
    """Whether this process exports traces, and through whom; `writer` is None while it does not."""

    def __init__(self) -> None:
        self.writer: SpanWriter | None = None

    def start(self, environment: Mapping[str, str] = os.environ) -> None:
        """Begins where the environment names a collector; once per process."""
        if self.writer is not None or not is_wanted(environment):
            return
        try:
            from routing_admin.request_log.spans import SpanWriter
        except ModuleNotFoundError as error:
            log.error(MISSING, error.name)
            return
        self.writer = SpanWriter()

    def export(self, entries: Iterable[Entry]) -> None:
        """Hands entries to the exporter's queue; whatever goes wrong there is a line of the log, no fault of theirs."""
        writer = self.writer
        if writer is None:
            return
        for entry in entries:
            try:
                writer.write(entry)
            except Exception as error:  # a trace is worth nothing beside a request
                log.error("request %s could not be traced: %s", entry.facts.id, type(error).__name__)

    def stop(self) -> None:
        """Sends what waits, as long as that may take, and ends."""
        writer, self.writer = self.writer, None
        if writer is not None:
            ending = threading.Thread(target=writer.close, name="tracing-end", daemon=True)
            ending.start()
            ending.join(FLUSH_SECONDS)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "otlp":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)


tracing = owned(Tracing)
