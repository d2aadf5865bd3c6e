"""Find internal errors in file type detection. The product only logs them, so that no upload fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _ErrorCollector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.records.append(record)


@contextmanager
def collect_errors() -> Iterator[list[logging.LogRecord]]:
    """Collect the records with a traceback that the logger `artifacts` receives in the `with` block.

    Each traceback shows a bug.
    """
    handler, log = _ErrorCollector(), logging.getLogger("artifacts")
    log.addHandler(handler)
    try:
        yield handler.records
    finally:
        log.removeHandler(handler)


@contextmanager
def expect_no_internal_error() -> Iterator[None]:
    """Raise an AssertionError for the first traceback that is logged in the `with` block."""
    with collect_errors() as records:
        yield
    for record in records:
        raise AssertionError(record.getMessage()) from (record.exc_info[1] if record.exc_info else None)
