"""The fields of a model's own price: amounts for a million tokens of each sort, in a currency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.own_prices import DEAREST, FIELDS, check_price
from capabilities.sentences import translate_sentence

LABELS: Mapping[str, Any] = {
    "input": pgettext_lazy("price", "Input"),
    "output": pgettext_lazy("price", "Output"),
    "cacheRead": gettext_lazy("Cache read"),
    "cacheWrite": gettext_lazy("Cache write"),
    "cacheWrite1h": gettext_lazy("Cache write (1 hour)"),
    "inputAudio": gettext_lazy("Audio input"),
    "inputImage": gettext_lazy("Image input"),
    "outputAudio": gettext_lazy("Audio output"),
    "outputImage": gettext_lazy("Image output"),
    "reasoning": gettext_lazy("Reasoning"),
}
"""What the amounts are called, the most used first."""


class PriceForm(forms.Form):
    """A price that the administrator sets; all fields empty for the listed one. `was` is what is stored."""

    currency = forms.CharField(label=gettext_lazy("Currency"), max_length=3, required=False)

    def __init__(self, data: Any = None, *, was: Mapping[str, Any]) -> None:
        super().__init__(data, prefix="price", initial=dict(was))
        self._was = was
        self.fields["currency"].widget.attrs |= {"placeholder": "USD", "autocomplete": "off", "spellcheck": "false"}
        for name in FIELDS:
            widget = forms.TextInput(attrs={"class": "num", "inputmode": "decimal", "autocomplete": "off"})
            self.fields[name] = forms.FloatField(
                label=LABELS[name], required=False, min_value=0, max_value=DEAREST, widget=widget
            )

    def clean(self) -> dict[str, Any]:
        """The price as JSON, empty where nothing is filled in; what is wrong with it stands at its field."""
        data = self.cleaned_data
        price: dict[str, Any] = {name: _plain(data[name]) for name in FIELDS if data.get(name) is not None}
        if currency := str(data.get("currency") or "").strip().upper():
            price = {"currency": currency, **price}
        for problem in () if self.errors else check_price(price):
            self.add_error(problem.field.rpartition(".")[2], translate_sentence(problem.message))
        return price

    def build_price(self) -> dict[str, Any]:
        """The price, with the fields that this form does not know as they were."""
        price = dict(self.cleaned_data)
        unknown = {name: value for name, value in self._was.items() if name not in FIELDS and name != "currency"}
        return {**price, **unknown} if price else {}

    @property
    def main_fields(self) -> list[forms.BoundField]:
        """Those that every price has."""
        return [self["currency"], *(self[name] for name in ("input", "output", "cacheRead", "cacheWrite"))]

    @property
    def further_fields(self) -> list[forms.BoundField]:
        """Those of few models."""
        return [self[name] for name in FIELDS if name not in ("input", "output", "cacheRead", "cacheWrite")]

    @property
    def has_further(self) -> bool:
        """Whether one of those is set or wrong, so that they are shown."""
        return any(each.value() not in (None, "") or each.errors for each in self.further_fields)


def _plain(amount: float) -> float | int:
    """2 for 2.0, as a person writes it."""
    return int(amount) if amount.is_integer() else amount
