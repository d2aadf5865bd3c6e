"""Log a lasting failure once when it begins, and the number of failed attempts when it ends."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.unavailable import classify_error, is_unavailable


@dataclass(slots=True)
class OutageLog:
    """Logs the failures of one repeated operation."""

    log: logging.Logger
    operation: str
    _last_kind: str = ""
    _failures: int = 0

    def note(self, error: BaseException) -> None:
        """Count a failure, and log it unless the previous failure had the same cause."""
        self._failures += 1
        explanation = explain_failure(error) or f"{type(error).__name__}: {error}"
        kind = classify_error(error) if is_unavailable(error) else explanation
        if kind != self._last_kind:
            self._last_kind = str(kind)
            self.log.error(
                "%s failed: %s", self.operation, explanation, exc_info=None if is_unavailable(error) else error
            )

    def end(self) -> None:
        if self._failures:
            self.log.warning("%s works again after %d failed attempts", self.operation, self._failures)
            self._last_kind, self._failures = "", 0
