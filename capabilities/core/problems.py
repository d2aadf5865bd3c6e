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
