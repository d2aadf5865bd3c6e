"""Form fields that the forms of several subjects share: limits, timeouts and JSON objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.datastructures import MultiValueDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.services.agent_limits import (
    CURRENCY,
    MAX_AMOUNT,
    MAX_MONEY,
    MODELS,
    MONEY,
    UNPRICED,
    UNPRICED_PRICE,
    Meter,
    UnpricedPolicy,
)
from capabilities.core.values import MAX_SECONDS, SHORTEST_SECONDS

FORBIDDEN_IN_NAMES = re.compile(r"[\s?#%\\\x00-\x1f\x7f]|^/|/$|//|(?:^|/)\.{1,2}(?:/|$)")


def check_new_name(name: str) -> None:
    """Raise `ValidationError` for a name or id that cannot be used unchanged in URLs or files.

    Only names typed into forms are checked. Imported entries may have other names, and their pages work too.
    """
    if FORBIDDEN_IN_NAMES.search(name):
        raise forms.ValidationError(
            _("Use no spaces, none of ? # % \\ and no part of only dots, and / only between other characters.")
        )


class Combobox(forms.TextInput):
    """A text field that suggests matches for the typed text, for choices too numerous for a select element.

    `options` names the kind of suggestions; see console/find/options.py. Because any text can be typed, the form must
    validate it.
    """

    template_name = "components/combobox.html"

    def __init__(self, options: str) -> None:
        super().__init__()
        self.options = options

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        widget = super().get_context(name, value, attrs)["widget"]
        own = {key: value for key, value in widget["attrs"].items() if key not in ("id", "class")}
        identity = {"id": widget["attrs"].get("id", name), "name": name, "value": widget["value"]}
        return {**identity, "options": self.options, "attributes": flatatt(own)}


class Chosen(forms.Textarea):
    """A field for several names, shown as removable chips with a combobox for adding names.

    Without JavaScript, it is a text area with one name per line.
    """

    template_name = "components/chosen.html"

    def __init__(self, options: str) -> None:
        super().__init__()
        self.options = options

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        own = {key: text for key, text in (attrs or {}).items() if key not in ("id", "class", "rows")}
        identity = {"id": (attrs or {}).get("id", name), "name": name, "value": value, "chosen": split_names(value)}
        return {**identity, "options": self.options, "attributes": flatatt(own)}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str | None:
        # The value is the text area's content and the text that was typed into the combobox.
        return "\n".join(data.getlist(name)) if isinstance(data, MultiValueDict) else data.get(name)


def split_names(text: Any) -> list[str]:
    """Return the lines of a text without duplicates or empty lines."""
    return list(dict.fromkeys(filter(None, map(str.strip, str(text or "").splitlines()))))


LIMITS: dict[Meter, tuple[Any, Any]] = {
    Meter.REQUESTS_PER_MINUTE: (gettext_lazy("Requests per minute"), ""),
    Meter.IN_FLIGHT: (gettext_lazy("Concurrent requests"), ""),
    Meter.TOKENS_PER_DAY: (gettext_lazy("Tokens per day"), gettext_lazy("Requests and answers combined.")),
    Meter.TOKENS_PER_MONTH: (gettext_lazy("Tokens per month"), ""),
    Meter.MONEY_PER_DAY: (gettext_lazy("Spend per day"), ""),
    Meter.MONEY_PER_MONTH: (gettext_lazy("Spend per month"), ""),
    Meter.BYTES_PER_DAY: (gettext_lazy("Request bytes per day"), ""),
}
"""Maps each limit to its label and hint, in the order of the form."""
COUNT_BOUNDS: dict[str, Any] = {"min_value": 1, "max_value": MAX_AMOUNT}
MONEY_BOUNDS: dict[str, Any] = {"min_value": Decimal("0.000001"), "max_value": MAX_MONEY, "decimal_places": 6}
USUAL_CURRENCY = "USD"
UNPRICED_CHOICES = {
    UnpricedPolicy.ALLOW: gettext_lazy("let pass, not counted"),
    UnpricedPolicy.REFUSE: gettext_lazy("refuse with 429"),
    UnpricedPolicy.COUNT: gettext_lazy("count at the price below"),
}


def make_models_field(limits: Mapping[str, Any], hint: Any) -> forms.Field:
    return forms.CharField(
        label=gettext_lazy("Allowed routes and services"),
        required=False,
        max_length=20_000,
        widget=Chosen("target"),
        help_text=hint,
        initial="\n".join(limits.get(MODELS, ())),
    )


def make_amount_fields(limits: Mapping[str, Any], meters: Iterable[Meter] = tuple(LIMITS)) -> dict[str, forms.Field]:
    """Return a form field for each limit that is an amount, by field name.

    The fields for spending limits are followed by those for the currency and for unpriced calls.
    """
    fields: dict[str, forms.Field] = {}
    for meter in meters:
        label, hint = LIMITS[meter]
        amount, bounds = (forms.DecimalField, MONEY_BOUNDS) if meter in MONEY else (forms.IntegerField, COUNT_BOUNDS)
        fields[meter.value] = amount(
            label=label, help_text=hint, required=False, initial=limits.get(meter.value), **bounds
        )
        # The following fields apply to all spending limits, so they are added after the last of these.
        if meter is MONEY[-1]:
            fields[CURRENCY] = _make_currency_field(limits.get(CURRENCY, USUAL_CURRENCY))
            fields[UNPRICED] = forms.ChoiceField(
                label=gettext_lazy("Calls without a known price"),
                required=False,
                help_text=gettext_lazy("Or without an exchange rate."),
                choices=list(UNPRICED_CHOICES.items()),
                initial=limits.get(UNPRICED, UnpricedPolicy.ALLOW),
            )
            fields[UNPRICED_PRICE] = forms.DecimalField(
                label=gettext_lazy("Their price per million tokens"),
                required=False,
                initial=limits.get(UNPRICED_PRICE),
                **MONEY_BOUNDS,
            )
    return fields


def read_models(data: Mapping[str, Any]) -> dict[str, Any]:
    names = split_names(data.get(MODELS))
    return {MODELS: names} if names else {}


def read_amounts(data: Mapping[str, Any]) -> dict[str, Any]:
    amounts = {meter.value: data[meter.value] for meter in LIMITS if data.get(meter.value) is not None}
    for meter in MONEY:
        if meter.value in amounts:
            amounts |= {meter.value: f"{amounts[meter.value]:f}", CURRENCY: data.get(CURRENCY) or USUAL_CURRENCY}
    policy = data.get(UNPRICED) or UnpricedPolicy.ALLOW
    # A policy for unpriced calls matters only if spending is limited.
    if CURRENCY in amounts and policy != UnpricedPolicy.ALLOW:
        amounts[UNPRICED] = str(policy)
        if policy == UnpricedPolicy.COUNT and data.get(UNPRICED_PRICE) is not None:
            amounts[UNPRICED_PRICE] = f"{data[UNPRICED_PRICE]:f}"
    return amounts


def check_unpriced(form: forms.BaseForm, data: Mapping[str, Any]) -> None:
    """Add an error if unpriced calls are to be charged at a fixed price but no price was entered."""
    if data.get(UNPRICED) == UnpricedPolicy.COUNT and data.get(UNPRICED_PRICE) is None:
        form.add_error(UNPRICED_PRICE, _("Enter the price that calls without a known price count at."))


def _make_currency_field(initial: str) -> forms.Field:
    return forms.RegexField(
        "^[A-Z]{3}$",
        label=gettext_lazy("Currency"),
        required=False,
        initial=initial,
        help_text=gettext_lazy("Other currencies are converted at their exchange rate."),
        error_messages={"invalid": gettext_lazy("Three capital letters, such as USD or CNY.")},
    )


TIMEOUTS: tuple[tuple[str, str | Promise], ...] = (
    ("connect", gettext_lazy("Connect")),
    ("firstContent", gettext_lazy("First content")),
    ("between", gettext_lazy("Between stream chunks")),
    ("total", gettext_lazy("Total")),
)
"""Configurable timeouts with their labels. Values are in seconds."""


class TimeoutField(forms.FloatField):
    """A timeout in seconds. `full_label` is its label where the heading above the timeouts is not visible."""

    def __init__(self, label: str, initial: float | None) -> None:
        super().__init__(
            label=label, required=False, initial=initial, min_value=SHORTEST_SECONDS, max_value=MAX_SECONDS
        )
        self.full_label = _("Timeout (%(name)s)") % {"name": label.lower()}


def make_timeout_fields(stored: Mapping[str, Any]) -> dict[str, forms.Field]:
    return {f"timeout_{name}": TimeoutField(str(label), stored.get(name)) for name, label in TIMEOUTS}


def timeout_fields(form: forms.BaseForm) -> list[forms.BoundField]:
    return [form[f"timeout_{name}"] for name, _label in TIMEOUTS]


def read_timeouts(data: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    names = {name for name, _label in TIMEOUTS}
    # Keep timeouts that only a newer version of this program knows.
    unknown = {name: value for name, value in stored.items() if name not in names}
    entered = {name: plain_number(data.get(f"timeout_{name}")) for name, _label in TIMEOUTS}
    return unknown | {name: value for name, value in entered.items() if value is not None}


def plain_number(value: float | None) -> float | None:
    return int(value) if value is not None and value.is_integer() else value


def object_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are not valid JSON, and databases reject them.


class JsonObjectField(forms.CharField):
    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else object_text(value)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return {}
        try:
            parsed = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as problem:
            raise forms.ValidationError(_("This is not JSON: %(problem)s") % {"problem": problem}) from None
        if not isinstance(parsed, dict):
            raise forms.ValidationError(_("Enter a JSON object."))
        return parsed
