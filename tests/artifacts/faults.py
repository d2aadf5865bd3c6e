"""Faults that detection outlived: an upload never ends for one, so a test has to look for what the log says of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Traces(logging.Handler):
    """Keeps the records that carry an exception's trace."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(record)


@contextmanager
def traces() -> Iterator[list[logging.LogRecord]]:
    """The records with a trace that `artifacts` logs meanwhile: each is a fault of our own."""
    handler, log = _Traces(), logging.getLogger("artifacts")
    log.addHandler(handler)
    try:
        yield handler.found
    finally:
        log.removeHandler(handler)


@contextmanager
def no_fault_of_our_own() -> Iterator[None]:
    """Fails with the first fault that was outlived inside, with its trace."""
    with traces() as found:
        yield
    for record in found:
        raise AssertionError(record.getMessage()) from (record.exc_info[1] if record.exc_info else None)
