"""Which parameters are in effect: the request's, else the candidate's, else the route's, else the provider's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """Sampling parameters somebody named; None where nobody did. Temperature 0 is a value (decision 8)."""

    temperature: float | None = None
    max_tokens: int | None = None


def in_effect(*levels: Params) -> Params:
    """For each parameter the first level that names it, levels given from strongest to weakest (MMR-P7)."""
    return Params(
        next((level.temperature for level in levels if level.temperature is not None), None),
        next((level.max_tokens for level in levels if level.max_tokens is not None), None),
    )
