"""A price as an administrator writes it: amounts per million tokens, in a currency; what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from capabilities.core.prices import CURRENCY, Price, Rates, Tier, rate_of
from capabilities.core.problems import Problem
from capabilities.core.worded import worded

DEAREST = 1_000_000
"""The most that a million tokens may cost; more is a slip of the pen."""
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "input": "input",
        "output": "output",
        "cacheRead": "cache_read",
        "cacheWrite": "cache_write",
        "cacheWrite1h": "cache_write_1h",
        "inputAudio": "input_audio",
        "inputImage": "input_image",
        "outputAudio": "output_audio",
        "outputImage": "output_image",
        "reasoning": "reasoning",
    }
)
"""The amounts by their names in JSON, and the sort of tokens each is for; the first two have to be there."""
REQUIRED = ("currency", "input", "output")


def check_price(data: object, path: str = "price") -> tuple[Problem, ...]:
    """What is wrong with a price; an unknown field is a warning, the rest errors. An empty object is no price."""
    if not isinstance(data, Mapping):
        example = "{'currency': 'USD', 'input': 2.5, 'output': 10}"
        return (
            Problem(
                path, worded("%(path)s must be an object such as %(example)s.", path=path, example=example), "type"
            ),
        )
    return tuple(_problems(data, path)) if data else ()


def _problems(data: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in REQUIRED:
        if data.get(name) is None:
            yield Problem(f"{path}.{name}", worded("%(path)s is missing.", path=f"{path}.{name}"), "required")
    for name, value in data.items():
        where = f"{path}.{name}"
        if name == "currency":
            if value is not None and not (isinstance(value, str) and CURRENCY.fullmatch(value)):
                sentence = worded(
                    "%(path)s must be a currency's three capital letters, such as USD or CNY.", path=where
                )
                yield Problem(where, sentence, "type")
        elif name not in FIELDS:
            known = ("currency", *FIELDS)
            sentence = worded("%(path)s is unknown and has no effect. Known: %(known)s.", path=where, known=known)
            yield Problem(where, sentence, "enum", "warning")
        elif value is not None and not _is_amount(value):
            sentence = worded(
                "%(path)s must be an amount for a million tokens, from 0 to %(most)s.", path=where, most=f"{DEAREST:,}"
            )
            yield Problem(where, sentence, "range")


def _is_amount(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= DEAREST
    )


def price_of(data: Mapping[str, Any]) -> Price | None:
    """The price that JSON describes; None for an empty object and for what `check_price` calls an error."""
    if not data or any(problem.severity == "error" for problem in check_price(data)):
        return None
    amounts = {field: data.get(name) for name, field in FIELDS.items()}
    rates = {field: rate_of(Decimal(str(value))) for field, value in amounts.items() if value is not None}
    return Price(data["currency"], (Tier(0, Rates(**rates)),))
