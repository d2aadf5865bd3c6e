"""Export traces to an OpenTelemetry collector, if OpenTelemetry's environment variables name one.

The journal's thread exports log entries after the answers, so requests never wait. OpenTelemetry's package is an
optional dependency, which is imported only if traces are exported. If it is missing, one log line says how to install
it.
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
"""How long a stopping process waits for a collector that does not respond, in seconds."""
MISSING = (
    "no traces are sent: %s is not installed; routing-admin[otlp] brings it, in a checkout `pip install -r "
    "requirements-extras.txt`, or unset OTEL_EXPORTER_OTLP_ENDPOINT"
)


class Tracing:
    """Trace export of this process; `writer` is None if traces are not exported."""

    def __init__(self) -> None:
        self.writer: SpanWriter | None = None

    def start(self, environment: Mapping[str, str] = os.environ) -> None:
        """Start exporting traces, once per process, if the environment names a collector."""
        if self.writer is not None or not is_wanted(environment):
            return
        try:
            from routing_admin.request_log.spans import SpanWriter
        except ModuleNotFoundError as error:
            log.error(MISSING, error.name)
            return
        self.writer = SpanWriter()

    def export(self, entries: Iterable[Entry]) -> None:
        """Queue log entries for export; errors are only logged."""
        writer = self.writer
        if writer is None:
            return
        for entry in entries:
            try:
                writer.write(entry)
            except Exception as error:  # A failed trace export must not affect the request log.
                log.error("request %s could not be traced: %s", entry.facts.id, type(error).__name__)

    def stop(self) -> None:
        """Send the queued traces within at most `FLUSH_SECONDS`, and stop the export."""
        writer, self.writer = self.writer, None
        if writer is not None:
            # Run this in a thread, because a collector that does not respond would block it.
            ending = threading.Thread(target=writer.close, name="tracing-end", daemon=True)
            ending.start()
            ending.join(FLUSH_SECONDS)


def is_wanted(environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "otlp":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)


tracing = owned(Tracing)
