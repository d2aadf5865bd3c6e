"""The server's log: no line of it holds a secret, and each is for people, or one JSON object for machines."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from capabilities.core.providers.redaction import redact

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is answered just now."""


class RedactFilter(logging.Filter):
    """Replaces anything that looks like a key in the finished line, the traceback of an error included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always lets the record through, cleaned."""
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(TRACEBACKS.formatException(record.exc_info))
        return True


class JsonFormatter(logging.Formatter):
    """Each line an object: `time` in UTC, `level`, `logger`, `message`; `request_id` and `error` where known."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, without a line break in it."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        if record.exc_text:
            line["error"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


TRACEBACKS = logging.Formatter()
"""What writes a traceback as text."""
