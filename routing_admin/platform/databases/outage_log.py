"""Say a failure that lasts once in the server's log, and its end with how often it happened."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.unavailable import fault_of, is_unavailable


@dataclass(slots=True)
class OutageLog:
    """The failures of one kind of work, `what`, that is tried again and again."""

    log: logging.Logger
    what: str
    _last_kind: str = ""
    _failures: int = 0

    def note(self, error: BaseException) -> None:
        """Count a failure; the line is written if the one before was of another kind or the work had succeeded."""
        self._failures += 1
        words = explain_failure(error) or f"{type(error).__name__}: {error}"
        kind = fault_of(error) if is_unavailable(error) else words
        if kind != self._last_kind:
            self._last_kind = str(kind)
            self.log.error("%s failed: %s", self.what, words, exc_info=None if is_unavailable(error) else error)

    def end(self) -> None:
        """Note that the work succeeded."""
        if self._failures:
            self.log.warning("%s works again after %d failed attempts", self.what, self._failures)
            self._last_kind, self._failures = "", 0
