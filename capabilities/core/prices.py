"""Token prices, and the exact cost of a call.

Amounts of money are integers in nanos (billionths of the currency's unit), so that the totals of many small calls are
exact. The kinds of tokens are the same as in `capabilities.core.wire.Usage`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from types import MappingProxyType
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable
from capabilities.core.wire import Usage

NANO = 1_000_000_000
"""Nanos in one unit of a currency."""
MAX_NANOS = 10**15
"""Maximum cost of one call: a million units of the currency. A higher cost must be an error, so it is reduced to this
maximum."""
CURRENCY = re.compile(r"[A-Z]{3}")
NO_CURRENCY = "XXX"
"""ISO 4217's code for "no currency", used for free usage."""
_SCALE = 1_000_000
"""Rates are stored in millionths of the currency's unit, the finest precision that vendors use."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices per million tokens of each kind, in millionths of the currency's unit.

    If a kind of token has no price of its own (None), it costs the same as other input or output. Cached tokens and
    input audio and images are part of the input. Output audio, output images and reasoning are part of the output. If
    `cache_write_1h` is None, `cache_write` applies.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    input_audio: int | None = None
    input_image: int | None = None
    output_audio: int | None = None
    output_image: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """Rates for requests with more input tokens than `above`. They apply to all tokens of the request."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price at a provider: its tiers in ascending order, and the currency's three-letter code.

    `source` is the origin of the price (empty for the administrator), and `checked_on` is the date on which it was
    checked. `others` are prices of the same model in other price lists
    (`capabilities.core.providers.catalogue.price_verdicts`).
    """

    currency: str
    tiers: tuple[Tier, ...]
    source: str = ""
    checked_on: date | None = None
    others: tuple[Price, ...] = ()

    def rates_for(self, prompt_tokens: int) -> Rates:
        fitting = [tier for tier in self.tiers if prompt_tokens > tier.above]
        # Tiers are in ascending order, so the last one that applies is the right one. If none applies, use the first.
        return (fitting or self.tiers)[-1 if fitting else 0].rates


@dataclass(frozen=True, slots=True)
class Cost:
    """A call's cost in nanos, and how much the provider's prompt cache saved.

    `saving` is negative if the call wrote to the cache and read little from it.
    """

    nanos: int
    currency: str
    saving: int = 0


FREE = Price(NO_CURRENCY, (Tier(0, Rates(0, 0)),), "the embedded provider")
"""The price of the embedded provider, which runs in this process."""


def rate_from_amount(amount: Decimal | None) -> int | None:
    """Convert an amount per million tokens to the unit of `Rates`. Return None if there is no amount."""
    return None if amount is None else int((amount * _SCALE).to_integral_value(ROUND_HALF_EVEN))


def amount_from_rate(rate: int) -> Decimal:
    return Decimal(rate) / _SCALE


def calculate_cost(usage: Usage, price: Price) -> Cost | None:
    """Return the cost of the used tokens.

    Return None if the provider reported no usage, or if a kind of token that was used has no price.
    """
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    rates = price.rates_for(usage.prompt_tokens or 0)
    input_parts, output_parts = _input_parts(usage, rates), _output_parts(usage, rates)
    # If part of the cost is unknown, return None, because the result must never be lower than the actual cost.
    if any(count and rate is None for count, rate in (*input_parts, *output_parts)):
        return None
    output_sum = _sum(output_parts)
    nanos = _nanos(_sum(input_parts) + output_sum)
    if not (usage.cached_tokens or usage.cache_write_tokens):
        return Cost(nanos, price.currency)
    # What the same usage would cost if cached tokens cost as much as uncached input.
    uncached = _sum(_input_parts(_without_cache(usage), rates)) + output_sum
    return Cost(nanos, price.currency, _nanos(uncached) - nanos)


Part = tuple[int, int | None]
"""A number of tokens and their rate."""


def _input_parts(usage: Usage, rates: Rates) -> list[Part]:
    # The number of tokens written to the cache includes those that are cached for an hour.
    hour = usage.cache_write_1h_tokens or 0
    return _split(
        usage.prompt_tokens,
        rates.input,
        (
            (usage.cached_tokens, rates.cache_read),
            (hour, rates.cache_write if rates.cache_write_1h is None else rates.cache_write_1h),
            ((usage.cache_write_tokens or 0) - hour, rates.cache_write),
            (usage.prompt_audio_tokens, rates.input_audio),
            (usage.prompt_image_tokens, rates.input_image),
        ),
    )


def _output_parts(usage: Usage, rates: Rates) -> list[Part]:
    return _split(
        usage.completion_tokens,
        rates.output,
        (
            (usage.completion_audio_tokens, rates.output_audio),
            (usage.completion_image_tokens, rates.output_image),
            (usage.reasoning_tokens, rates.reasoning),
        ),
    )


def _split(whole: int | None, rate: int | None, sorts: Sequence[tuple[int | None, int | None]]) -> list[Part]:
    remaining, parts = whole or 0, list[Part]()
    for count, part_rate in sorts:
        if count and part_rate is not None:
            # The parts that a provider reports may add up to more than the total, but no token must be billed twice.
            part_count = min(max(count, 0), remaining)
            parts.append((part_count, part_rate))
            remaining -= part_count
    return [*parts, (remaining, rate)]


def _without_cache(usage: Usage) -> Usage:
    return Usage(
        usage.prompt_tokens,
        prompt_audio_tokens=usage.prompt_audio_tokens,
        prompt_image_tokens=usage.prompt_image_tokens,
    )


def _sum(parts: Sequence[Part]) -> int:
    return sum(count * (rate or 0) for count, rate in parts)


def _nanos(total: int) -> int:
    # Tokens times millionths of a unit per million tokens gives thousandths of a nano. The maximum is low enough that
    # many costs can be added up.
    return min((total + 500) // 1000, MAX_NANOS)


def money_text(nanos: int, currency: str) -> str:
    """Return an amount with its currency, such as `12.34 USD`, or `0` without a currency."""
    return "0" if currency == NO_CURRENCY else f"{amount_text(nanos)} {currency}"


def money_texts(sums: Mapping[str, int]) -> list[str]:
    """Return the amount in each currency, sorted by currency. Free usage is omitted if there is paid usage."""
    paid = {currency: nanos for currency, nanos in sums.items() if currency != NO_CURRENCY} or sums
    return [money_text(nanos, currency) for currency, nanos in sorted(paid.items())]


def exact_amount(nanos: int) -> str:
    """Return an amount in nanos as text with all digits, such as `0.0035` or `12`."""
    return f"{(Decimal(nanos) / NANO).normalize():f}"


def amount_text(nanos: int) -> str:
    """Return an amount in nanos as text.

    Amounts of at least one unit have two decimals, and smaller ones two significant digits and at most nine decimals.
    """
    amount = Decimal(nanos) / NANO
    decimals = 2 if abs(amount) >= 1 or not amount else min(9, 1 - amount.adjusted())
    text = f"{amount:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals > 2 else text


# Prices in JSON, as administrators enter them: amounts per million tokens in a currency.

MAX_PRICE = 1_000_000
"""Maximum price of a million tokens. A higher price must be a typo."""
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
"""Maps names of the amounts in JSON to fields of `Rates`. The first two are required."""
REQUIRED = ("currency", "input", "output")


def check_price(data: object, path: str = "price") -> tuple[Problem, ...]:
    """Return the problems in a price in JSON. An unknown field is only a warning.

    An empty object means that there is no price.
    """
    if not isinstance(data, Mapping):
        example = "{'currency': 'USD', 'input': 2.5, 'output': 10}"
        return (
            Problem(
                path,
                translatable("%(path)s must be an object such as %(example)s.", path=path, example=example),
                "type",
            ),
        )
    return tuple(_problems(data, path)) if data else ()


def _problems(data: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in REQUIRED:
        if data.get(name) is None:
            yield Problem(f"{path}.{name}", translatable("%(path)s is missing.", path=f"{path}.{name}"), "required")
    for name, value in data.items():
        field_path = f"{path}.{name}"
        if name == "currency":
            if value is not None and not (isinstance(value, str) and CURRENCY.fullmatch(value)):
                sentence = translatable(
                    "%(path)s must be a currency's three capital letters, such as USD or CNY.", path=field_path
                )
                yield Problem(field_path, sentence, "type")
        elif name not in FIELDS:
            known = ("currency", *FIELDS)
            sentence = translatable(
                "%(path)s is unknown and has no effect. Known: %(known)s.", path=field_path, known=known
            )
            yield Problem(field_path, sentence, "enum", "warning")
        elif value is not None and not _is_amount(value):
            sentence = translatable(
                "%(path)s must be an amount for a million tokens, from 0 to %(most)s.",
                path=field_path,
                most=f"{MAX_PRICE:,}",
            )
            yield Problem(field_path, sentence, "range")


def _is_amount(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= MAX_PRICE
    )


def parse_price(data: Mapping[str, Any]) -> Price | None:
    """Return the price that this JSON defines, or None if it is empty or `check_price` reports an error."""
    if not data or any(problem.severity == "error" for problem in check_price(data)):
        return None
    amounts = {field: data.get(name) for name, field in FIELDS.items()}
    # Convert through text, because otherwise a float's rounding error would become part of the price.
    rates = {field: rate_from_amount(Decimal(str(value))) for field, value in amounts.items() if value is not None}
    return Price(data["currency"], (Tier(0, Rates(**rates)),))
