"""Format the server's log as readable lines or as one JSON object per line, without secrets."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from django.core.exceptions import BadRequest, PermissionDenied
from django.http.multipartparser import MultiPartParserError

from artifacts.core.errors import StoreUnavailableError
from capabilities.core.providers.redaction import MASK, redact
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.unavailable import is_unavailable
from routing_admin.platform.server.fair_semaphore import OverloadedError

request_id: ContextVar[str] = ContextVar("request_id", default="")


class RedactFilter(logging.Filter):
    """Redact everything that looks like a key in the formatted line and its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(_cut(record.getMessage(), LINE_CHARACTERS)), ()
        # Format the traceback here, so that it is also redacted.
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(_cut(TRACEBACKS.formatException(record.exc_info), TRACEBACK_CHARACTERS))
        return True


LINE_CHARACTERS = 8_192
TRACEBACK_CHARACTERS = 65_536
"""Maximum number of characters in a line and in its traceback. Without these limits, callers could cause long lines by
requesting long paths.
"""


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else f"{text[:max_characters]}{MASK} ({len(text)} characters)"


REFUSALS = (PermissionDenied, BadRequest, MultiPartParserError, OverloadedError)
"""Errors of rejected requests, which are logged without a traceback because they are not bugs of the program."""


class ExplainFilter(logging.Filter):
    """Replace the tracebacks of outages with a sentence that says what to do, and drop those of rejected requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        problem = error.details if isinstance(error, StoreUnavailableError) else None
        if error is not None and is_unavailable(error):
            problem = explain_failure(error)
        if problem:
            record.msg, record.args, record.exc_info = f"{record.getMessage()}: {problem}", (), None
        elif isinstance(error, REFUSALS):
            record.exc_info = None
        return True


class JsonFormatter(logging.Formatter):
    """Format a record as JSON: `time` in UTC, `level`, `logger`, `message`, and `request_id` and `error` if known."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            entry["request_id"] = current
        if record.exc_text:
            entry["error"] = record.exc_text
        return json.dumps(entry, ensure_ascii=False)


TRACEBACKS = logging.Formatter()
