"""Keeps secrets out of the log: the last filter every line passes."""

from __future__ import annotations

import logging

from capabilities.core.providers.redaction import redact


class RedactFilter(logging.Filter):
    """Replaces anything that looks like a key in the finished line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always lets the record through, cleaned."""
        record.msg, record.args = redact(record.getMessage()), ()
        return True
