"""Rules for limits on agents and labels in a file, which have the form of database rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from capabilities.core.prices import CURRENCY as CURRENCY_CODE
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import (
    CURRENCY,
    MAX_MONEY,
    MODELS,
    MONEY,
    MOST,
    UNPRICED,
    UNPRICED_PRICE,
    Meter,
    UnpricedPolicy,
)
from capabilities.core.storable import is_storable
from capabilities.core.translatable import translatable
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import missing_field, not_one_of, out_of_range, wrong_type
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.field_rules import Rule, broken

LIMIT_NAMES = (MODELS, CURRENCY, UNPRICED, UNPRICED_PRICE, *(meter.value for meter in Meter))


def limits(path: str, value: Any) -> Iterator[Problem]:
    """Yield the problems of an agent's or a label's limits, as listed in `docs/automation.md`."""
    yield from rule.mapping(path, value)
    if not isinstance(value, Mapping):
        return
    for name in value.keys() - set(LIMIT_NAMES):
        yield not_one_of(child(path, name), LIMIT_NAMES)
    yield from broken(LIMIT_RULES, value, path)
    if value.get(UNPRICED) == UnpricedPolicy.COUNT and value.get(UNPRICED_PRICE) is None:
        yield missing_field(child(path, UNPRICED_PRICE))
    if any(value.get(meter) is not None for meter in MONEY) and not value.get(CURRENCY):
        yield missing_field(child(path, CURRENCY))


def _names(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, list) or not all(isinstance(name, str) and is_storable(name) for name in value):
        yield wrong_type(path, translatable("a list of names"))


def _currency(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str) or not CURRENCY_CODE.fullmatch(value):
        yield wrong_type(path, translatable("a currency's three capital letters, such as USD or CNY"))


def _money(path: str, value: Any) -> Iterator[Problem]:
    try:
        # Rows store amounts as decimal text.
        is_good = isinstance(value, str) and value.isascii() and 0 < Decimal(value) <= MAX_MONEY
    except InvalidOperation:
        is_good = False
    if not is_good:
        yield out_of_range(path, translatable("an amount above 0, as a text"))


_count = rule.number(1, MOST, translatable("a whole number above 0"), whole=True)
LIMIT_RULES = (
    Rule(MODELS, _names),
    Rule(CURRENCY, _currency),
    Rule(UNPRICED, rule.one_of(tuple(UnpricedPolicy))),
    Rule(UNPRICED_PRICE, _money),
    *(Rule(meter.value, _money if meter in MONEY else _count) for meter in Meter),
)
