"""Form fields for timeouts, shared by providers and model services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.values import MAX_SECONDS, SHORTEST_SECONDS

TIMEOUTS: tuple[tuple[str, str | Promise], ...] = (
    ("connect", gettext_lazy("Connect")),
    ("firstContent", gettext_lazy("First content")),
    ("between", gettext_lazy("Between stream chunks")),
    ("total", gettext_lazy("Total")),
)
"""The configurable timeouts, in seconds."""


def make_timeout_fields(stored: Mapping[str, Any]) -> dict[str, forms.Field]:
    return {
        f"timeout_{name}": forms.FloatField(
            label=str(label),
            required=False,
            min_value=SHORTEST_SECONDS,
            max_value=MAX_SECONDS,
            initial=stored.get(name),
        )
        for name, label in TIMEOUTS
    }


def timeout_fields(form: forms.BaseForm) -> list[forms.BoundField]:
    return [form[f"timeout_{name}"] for name, _label in TIMEOUTS]


def timeouts_in(data: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    names = {name for name, _label in TIMEOUTS}
    # Timeouts that only a newer version knows are kept.
    unknown = {name: value for name, value in stored.items() if name not in names}
    entered = {name: plain_number(data.get(f"timeout_{name}")) for name, _label in TIMEOUTS}
    return unknown | {name: value for name, value in entered.items() if value is not None}


def plain_number(value: float | None) -> float | None:
    # A whole number is shown without a decimal point.
    return int(value) if value is not None and value.is_integer() else value
