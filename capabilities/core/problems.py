"""What is wrong with a configuration, as a value that pages, commands and the API all show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: where, in words, and which rule it breaks.

    `field` is a path such as `services[0].apiKey`; `constraint` is one of required, type, reference, enum,
    duplicate, range; `severity` is `error` (stops an import) or `warning` (REQUIREMENTS, decision 11).
    """

    field: str
    message: str
    constraint: str
    severity: str = "error"

    @property
    def line(self) -> str:
        """The problem in one line that says where it is, once: many a sentence begins with its place."""
        told = not self.field or self.message.startswith((f"{self.field} ", f"{self.field}:"))
        return self.message if told else f"{self.field}: {self.message}"


MAX_PROBLEMS = 20_000
"""Problems after which no more are looked for."""
