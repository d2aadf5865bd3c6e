"""The forms for a model service and its price."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.delivery.slots_json import check_limits
from capabilities.core.json_codec import read_repaired_json
from capabilities.core.prices import FIELDS, MAX_PRICE, check_price
from capabilities.core.storable import find_unstorable
from capabilities.labels import PRICE_LABELS
from capabilities.models import Service
from capabilities.sentences import translate_sentence
from routing_admin.console.base.content_policies import (
    HtmlFormField,
    TextLimitField,
    policy_choices,
    read_content_option,
    read_policy,
    with_content,
)
from routing_admin.console.base.form_fields import (
    Combobox,
    JsonObjectField,
    check_new_name,
    make_timeout_fields,
    read_timeouts,
    timeout_fields,
)
from routing_admin.console.matrix.queries import MatrixCell
from routing_admin.console.providers.queries import select_providers

if TYPE_CHECKING:
    ServiceModelForm = forms.ModelForm[Service]
else:
    ServiceModelForm = forms.ModelForm


# A service's own price consists of an amount per million tokens for each token category, in one currency.


class PriceForm(forms.Form):
    """The form for a price that replaces the listed one. If all fields are empty, the listed price applies."""

    currency = forms.CharField(label=gettext_lazy("Currency"), max_length=3, required=False)

    def __init__(self, data: Any = None, *, was: Mapping[str, Any]) -> None:
        super().__init__(data, prefix="price", initial=dict(was))
        self._was = was
        self.fields["currency"].widget.attrs |= {"placeholder": "USD", "autocomplete": "off", "spellcheck": "false"}
        for name in FIELDS:
            widget = forms.TextInput(attrs={"class": "num", "inputmode": "decimal", "autocomplete": "off"})
            self.fields[name] = forms.FloatField(
                label=PRICE_LABELS[name], required=False, min_value=0, max_value=MAX_PRICE, widget=widget
            )

    def clean(self) -> dict[str, Any]:
        """Return the price as JSON, or an empty object if nothing is filled in. Add each problem to its field."""
        data = self.cleaned_data
        price: dict[str, Any] = {name: _plain(data[name]) for name in FIELDS if data.get(name) is not None}
        if currency := str(data.get("currency") or "").strip().upper():
            price = {"currency": currency, **price}
        for problem in () if self.errors else check_price(price):
            self.add_error(problem.field.rpartition(".")[2], translate_sentence(problem.message))
        return price

    def build_price(self) -> dict[str, Any]:
        price = dict(self.cleaned_data)
        # Keep price fields that this form does not show.
        unknown = {name: value for name, value in self._was.items() if name not in FIELDS and name != "currency"}
        return {**price, **unknown} if price else {}

    @property
    def main_fields(self) -> list[forms.BoundField]:
        return [self["currency"], *(self[name] for name in ("input", "output", "cacheRead", "cacheWrite"))]

    @property
    def further_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in FIELDS if name not in ("input", "output", "cacheRead", "cacheWrite")]

    @property
    def has_further(self) -> bool:
        return any(field.value() not in (None, "") or field.errors for field in self.further_fields)


def _plain(amount: float) -> float | int:
    return int(amount) if amount.is_integer() else amount


SWITCHES = ("switch", "cell", "custom", "side")
"""Form fields for capabilities, which the form for a new service lacks."""


def limits_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


class CellsField(forms.MultipleChoiceField):
    """Switches for capabilities, each with a value such as `input:vision`.

    Values for switches that the service does not have are ignored.
    """

    def valid_value(self, value: object) -> bool:
        return True


class ServiceForm(ServiceModelForm):
    """The form for a model service. Its id cannot change later, because files and agents refer to it.

    `switch` lists all switches on the posted page, and `cell` those that are on.
    """

    provider = forms.ModelChoiceField(
        select_providers(),
        label=gettext_lazy("Provider"),
        to_field_name="name",
        widget=Combobox("provider"),
        error_messages={"invalid_choice": gettext_lazy("No provider has this name.")},
    )
    tags = forms.CharField(label=gettext_lazy("Tags"), required=False, help_text=gettext_lazy("Separated by commas."))
    policy = forms.ChoiceField(
        label=gettext_lazy("Content policy"),
        choices=policy_choices(gettext_lazy("as in Settings")),
        required=False,
    )
    text = TextLimitField(gettext_lazy("as in Settings"))
    html = HtmlFormField(gettext_lazy("as in Settings"))
    limits_json = forms.CharField(
        label=gettext_lazy("Custom limits (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"spellcheck": "false"}),
        help_text=gettext_lazy(
            'Overrides the table, for example {"image": {"maxBytes": 5000000}, "contextTokens": 32000}'
        ),
    )
    extra_body_json = JsonObjectField(
        label=gettext_lazy("Additional request fields (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=gettext_lazy("Sent with every request to this model."),
    )
    switch = CellsField(required=False, widget=forms.MultipleHiddenInput)
    cell = CellsField(required=False, widget=forms.MultipleHiddenInput)
    custom = forms.CharField(
        label=gettext_lazy("Another capability"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("A capability without a switch. It is added when you save."),
    )
    side = forms.ChoiceField(
        label=gettext_lazy("Side"),
        choices=[("input", gettext_lazy("Reads")), ("output", gettext_lazy("Writes"))],
        initial="input",
        required=False,
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Service
        fields = ["service_id", "name", "provider", "model", "description", "enabled", "routed"]
        error_messages = {
            "service_id": {"unique": gettext_lazy("A model service with this id already exists.")},
        }
        labels = {
            "service_id": gettext_lazy("Id"),
            "name": gettext_lazy("Name"),
            "model": gettext_lazy("Model name"),
            "description": gettext_lazy("Description"),
            "enabled": gettext_lazy("Enabled"),
            "routed": gettext_lazy("Routes use this service for its provider and model"),
        }
        help_texts = {
            "service_id": gettext_lazy("The id that agents, files and callers use."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row = self.instance
        self.fields["service_id"].validators.append(check_new_name)
        # The id of an existing service cannot change, and only an existing service has switches.
        for name in ("service_id",) if row.pk else SWITCHES:
            del self.fields[name]
        self.fields["version"].initial = row.version
        provider = row.provider if row.provider_id else self.initial.get("provider")
        example = provider.default_model if provider else "gpt-4o"
        self.fields["model"].help_text = _("The name sent to the provider, for example %(model)s.") % {"model": example}
        if row.provider_id:
            self.initial["provider"] = row.provider
        self.fields["tags"].initial = ", ".join(str(tag) for tag in row.capability_tags)
        self.fields["policy"].initial = read_policy(row.content)
        for name in ("text", "html"):
            self.fields[name].initial = read_content_option(row.content, name)
        self.fields["limits_json"].initial = limits_text(row.limits)
        self.fields["extra_body_json"].initial = row.extra_body
        self.fields.update(make_timeout_fields(row.timeouts))
        self.price = PriceForm(self.data if self.is_bound else None, was=row.price)

    def is_valid(self) -> bool:
        return all([super().is_valid(), not self.is_bound or self.price.is_valid()])

    @property
    def timeout_fields(self) -> list[forms.BoundField]:
        return timeout_fields(self)

    def clean_limits_json(self) -> str:
        text = str(self.cleaned_data["limits_json"]).strip()
        if not text:
            return text
        try:
            value = read_repaired_json(text)
        except (ValueError, RecursionError) as problem:
            raise forms.ValidationError(_("This is not JSON: %(problem)s") % {"problem": problem}) from None
        problems = [translate_sentence(problem.message) for problem in (*check_limits(value), *find_unstorable(value))]
        if problems:
            raise forms.ValidationError(problems)
        return text

    def apply_switches(self, squares: Iterable[MatrixCell]) -> list[MatrixCell]:
        """Return the service's capabilities: as stored or, if the form was posted, as posted."""
        if not self.is_bound:
            return list(squares)
        switches, on = set(self["switch"].value() or ()), set(self["cell"].value() or ())
        # A switch that was not on the posted page was added after the page was loaded, so it keeps its stored value.
        return [replace(square, on=square.key in on) if square.key in switches else square for square in squares]

    def cells(self, squares: Iterable[MatrixCell]) -> dict[tuple[str, str], bool]:
        """Return the capabilities that the form changes or adds, with their new values."""
        stored = list(squares)
        pairs = zip(stored, self.apply_switches(stored), strict=True)
        changes = {(old.side, old.name): new.on for old, new in pairs if new.on != old.on}
        custom = str(self.cleaned_data["custom"])
        return changes | ({(self.cleaned_data["side"] or "input", custom): True} if custom else {})

    def build_row(self) -> Service:
        """Return the row with the form's values, unsaved."""
        row = self.save(commit=False)
        data = self.cleaned_data
        tags = [word.strip() for word in data["tags"].split(",") if word.strip()]
        # Tags from a file may have values that are not text, so unchanged tags are kept as they are.
        if tags != [str(tag) for tag in row.capability_tags]:
            row.capability_tags = tags
        row.limits = read_repaired_json(data["limits_json"]) if data["limits_json"] else {}
        row.price = self.price.build_price()
        if "extra_body_json" in self.data:  # Pages of earlier versions post neither of these fields.
            row.extra_body = data["extra_body_json"]
            row.timeouts = read_timeouts(data, row.timeouts)
        if data["policy"] != read_policy(row.content):
            row.content = with_content(row.content, policy=data["policy"])
        for name in ("text", "html"):
            if name in self.data and data[name] != read_content_option(row.content, name):
                row.content = with_content(row.content, **{name: data[name]})
        if not row.pk:
            row.declares_capabilities = False
        return row
