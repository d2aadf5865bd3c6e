"""Configuration problems that pages, commands and the API display."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a configuration: where it is, a sentence about it, and the violated rule.

    `field` is a path such as `services[0].apiKey`. `constraint` is one of required, type, reference, enum, duplicate,
    range. `severity` is `error` (stops an import) or `warning`.
    """

    field: str
    message: str
    constraint: str
    severity: str = "error"

    @property
    def line(self) -> str:
        """Return the path and the sentence as one line, without repeating the path."""
        # Many messages already begin with the path, so do not repeat it.
        names_field = not self.field or self.message.startswith((f"{self.field} ", f"{self.field}:"))
        return self.message if names_field else f"{self.field}: {self.message}"


MAX_PROBLEMS = 20_000
"""Checks stop once they have found this many problems."""
