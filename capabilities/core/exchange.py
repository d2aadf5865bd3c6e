"""Convert amounts between currencies with rates configured by an administrator. Rates are never fetched or guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import lru_cache

from capabilities.core.prices import CURRENCY, NO_CURRENCY, Price, Rates
from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable

AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
SOURCE_CHARS = 200


ONE = Decimal(1)
_read_rate = lru_cache(maxsize=256)(Decimal)  # The usage page converts a thousand amounts, all with the same few rates.


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """An exchange rate with its date and source.

    `rate` is how many units of `into` one unit of `currency` is worth, as decimal text.
    """

    currency: str
    into: str
    rate: str
    day: str
    source: str

    def __str__(self) -> str:
        return f"1 {self.currency} = {self.rate} {self.into}"


@dataclass(frozen=True, slots=True)
class ExchangeTable:
    """All exchange rates. Every rate converts to the same currency, `into`."""

    rates: tuple[ExchangeRate, ...] = ()

    @property
    def into(self) -> str:
        """Return the currency to which all amounts can be converted, or "" if there are no rates."""
        return self.rates[0].into if self.rates else ""

    def total(self, sums: Mapping[str, int]) -> int | None:
        """Return the total of amounts in several currencies, converted to `into`, or None if a rate is missing."""
        into = self.into
        amounts = [self.convert(nanos, currency, into) for currency, nanos in sums.items()]
        return None if not into or None in amounts else sum(amount for amount in amounts if amount is not None)

    def convert(self, nanos: int, currency: str, target: str) -> int | None:
        """Return an amount in another currency, or None if there is no rate."""
        # Free usage has no currency and needs no rate.
        if currency in (target, NO_CURRENCY):
            return nanos
        factor = self._factor(currency, target)
        return None if factor is None else _whole(nanos * factor)

    def price_in(self, price: Price, target: str) -> Price | None:
        """Return a price in another currency, or None if there is no rate. A free price needs no rate."""
        if price.currency in (target, NO_CURRENCY):
            return replace(price, currency=target)
        factor = self._factor(price.currency, target)
        if factor is None:
            return None
        tiers = tuple(replace(tier, rates=_scale(tier.rates, factor)) for tier in price.tiers)
        return replace(price, currency=target, tiers=tiers)

    def _factor(self, currency: str, target: str) -> Decimal | None:
        source_value, target_value = self._value(currency), self._value(target)
        return source_value / target_value if source_value is not None and target_value is not None else None

    def _value(self, currency: str) -> Decimal | None:
        # All rates convert to the same currency, so convert between two other currencies through it.
        if self.into and currency == self.into:
            return ONE
        return next((_read_rate(rate.rate) for rate in self.rates if rate.currency == currency), None)


def check_rate(rate: ExchangeRate, others: Iterable[ExchangeRate], today: date) -> Iterator[Problem]:
    """Yield the problems with a rate. `others` are the other rates. All of them must convert to the same currency."""
    for name in ("currency", "into"):
        if not CURRENCY.fullmatch(getattr(rate, name)) or getattr(rate, name) == NO_CURRENCY:
            yield Problem(name, translatable("A currency is three capital letters, such as USD or CNY."), "type")
    if rate.currency == rate.into:
        yield Problem("currency", translatable("A rate is between two currencies."), "range")
    if not _is_amount(rate.rate):
        yield Problem("rate", translatable("The rate must be a number above 0 with at most nine decimals."), "range")
    if not _is_past(rate.day, today):
        yield Problem("day", translatable("The day cannot be in the future. Write it like 2026-11-22."), "range")
    if not rate.source.strip():
        yield Problem(
            "source",
            translatable("Enter the source of the rate, for example the bank, a web page or an invoice."),
            "required",
        )
    for other_rate in others:
        if other_rate.into != rate.into or other_rate.currency == rate.into:
            sentence = translatable(
                "The other rates convert to %(currency)s. Delete them first.", currency=other_rate.into
            )
            yield Problem("into", sentence, "range")
            return


def _is_amount(text: str) -> bool:
    try:
        return bool(AMOUNT.fullmatch(text)) and Decimal(text) > 0
    except InvalidOperation:
        return False


def _is_past(text: str, today: date) -> bool:
    try:
        return date.fromisoformat(text) <= today
    except ValueError:
        return False


def _scale(rates: Rates, factor: Decimal) -> Rates:
    amounts = {name: getattr(rates, name) for name in Rates.__slots__}
    return Rates(**{name: None if amount is None else _whole(amount * factor) for name, amount in amounts.items()})


def _whole(amount: Decimal) -> int:
    return int(amount.to_integral_value(ROUND_HALF_EVEN))
