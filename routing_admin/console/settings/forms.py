"""Forms on the settings page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from capabilities.core.delivery.reader import DEFAULT_POLICY, HTML_FORMS
from capabilities.core.exchange import SOURCE_CHARS
from routing_admin.console.base.content_policies import HtmlFormField, TextLimitField, policy_choices
from routing_admin.console.base.page_responses import Difference, render_value
from routing_admin.console.base.schemas import CENTURY_DAYS, MEBIBYTE

CURRENCY = {"class": "input num", "placeholder": "CNY", "autocomplete": "off", "spellcheck": "false"}
AMOUNT_ATTRIBUTES = {"class": "input num", "placeholder": "0.14", "inputmode": "decimal", "autocomplete": "off"}
NUMBER_ATTRIBUTES = {"class": "num", "inputmode": "numeric", "autocomplete": "off"}

FORM_ID = "settings"
IN_MEBIBYTES = ("quota_bytes", "agent_quota_bytes")
NUMBERS = ("request_days", "artifact_days", *IN_MEBIBYTES)


class SettingsForm(forms.Form):
    """The form for settings that are saved together. An empty number field means no limit.

    `shown` contains the stored values with which the form was rendered. Only values that differ from these are saved.
    """

    default_language = forms.ChoiceField(
        label=_("Default language"), help_text=_("For requests that name no language."), required=False
    )
    content_policy = forms.ChoiceField(
        label=_("Files that a model cannot read"),
        help_text=_("Models that cannot read a file get its text or a converted image, otherwise a description."),
        choices=policy_choices(),
    )
    content_text = TextLimitField("50%")
    content_html = HtmlFormField()
    request_days = forms.IntegerField(
        label=_("Days requests are kept"),
        min_value=1,
        max_value=CENTURY_DAYS,
        widget=forms.TextInput(attrs=NUMBER_ATTRIBUTES),
    )
    artifact_days = forms.IntegerField(
        label=_("Days new artifacts are kept"),
        help_text=_("Empty: until deleted."),
        required=False,
        min_value=1,
        max_value=CENTURY_DAYS,
        widget=forms.TextInput(attrs=NUMBER_ATTRIBUTES),
    )
    quota_bytes = forms.IntegerField(
        label=_("Space for artifacts, MiB"),
        help_text=_("Empty: limited only by the disk. When it is used up, uploads are refused."),
        required=False,
        min_value=1,
        max_value=1024 * MEBIBYTE,
        widget=forms.TextInput(attrs=NUMBER_ATTRIBUTES),
    )
    agent_quota_bytes = forms.IntegerField(
        label=_("Space for each agent's artifacts, MiB"),
        help_text=_("Empty: no limit per agent. When it is used up, the agent's uploads are refused."),
        required=False,
        min_value=1,
        max_value=1024 * MEBIBYTE,
        widget=forms.TextInput(attrs=NUMBER_ATTRIBUTES),
    )
    record_bodies = forms.BooleanField(
        label=_("Record request bodies"),
        help_text=_("Off by default: names, outcomes and times are always in the log, contents never."),
        required=False,
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        stored: Mapping[str, Any],
        codes: Sequence[str],
        is_read_only: bool = False,
    ) -> None:
        self.shown = read_shown((data or {}).get("shown", ""), stored)
        super().__init__(data, initial=to_fields(self.shown))
        language = self.fields["default_language"]
        assert isinstance(language, forms.ChoiceField)  # noqa: S101 - declared above, for the type checker
        language.choices = [("", _("none (then en)")), *((code, code) for code in codes)]
        for field in self.fields.values():
            field.disabled = is_read_only
            # On the page, other forms lie between this form's fields, so each field refers to its form by id.
            field.widget.attrs["form"] = FORM_ID

    @property
    def changed_data(self) -> list[str]:
        return super().changed_data if self.is_bound else []

    @property
    def shown_text(self) -> str:
        return json.dumps(self.shown)

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that the user changed, with their values as they are stored."""
        return {name: self._to_stored(name) for name in self.changed_data}

    def _to_stored(self, name: str) -> Any:
        value = self.cleaned_data[name]
        return value * MEBIBYTE if value and name in IN_MEBIBYTES else value

    @property
    def change_lines(self) -> list[str]:
        """The settings that the user changed, as text, even if their values are invalid."""
        return [
            f"{self[name].label}{gettext(': ')}{self.describe(name, self[name].value())}" for name in self.changed_data
        ]

    def describe(self, name: str, value: Any) -> str:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            return str(dict(field.choices).get(value, value))  # type: ignore[arg-type]
        return render_value(value) if isinstance(value, bool) else str(value or "∞")

    def find_differences(self, stored: Mapping[str, Any]) -> list[Difference]:
        """Return the settings that both this user and another user have changed.

        Saving the form again overwrites the other user's values.
        """
        theirs, found = to_fields(stored), []
        for name in self.changed_data:
            if stored[name] != self.shown[name]:
                values = (self.describe(name, value) for value in (theirs[name], self[name].value()))
                found.append(Difference(str(self[name].label), *values))
        self.shown = dict(stored)
        return found


def to_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Convert stored settings to form values, for example bytes to MiB."""
    mebibytes = {name: stored[name] // MEBIBYTE if stored[name] else None for name in IN_MEBIBYTES}
    defaults = {"content_policy": DEFAULT_POLICY, "content_html": HTML_FORMS[0]}
    return {**stored, **mebibytes, **{name: stored[name] or default for name, default in defaults.items()}}


def read_shown(text: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with which the posted form was rendered. If they are malformed, return the stored ones."""
    try:
        shown = json.loads(text)
    except ValueError:
        return dict(stored)
    is_whole = isinstance(shown, dict) and shown.keys() == stored.keys()
    return shown if is_whole and all(isinstance(shown[name], int | None) for name in NUMBERS) else dict(stored)


class LanguageForm(forms.Form):
    """The form for a language and the directive that tells models to answer in it."""

    code = forms.CharField(
        label=_("Code"),
        max_length=35,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    directive = forms.CharField(
        label=_("Directive"),
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Responda em português."}),
    )


class ExchangeRateForm(forms.Form):
    """The form for an exchange rate: what one unit of a currency is worth in another, with date and source."""

    currency = forms.CharField(
        label=_("Currency"), max_length=3, widget=forms.TextInput(attrs={**CURRENCY, "aria-label": _("Currency")})
    )
    rate = forms.CharField(
        label=_("Rate"), max_length=20, widget=forms.TextInput(attrs={**AMOUNT_ATTRIBUTES, "aria-label": _("Rate")})
    )
    into = forms.CharField(
        label=_("Converted to"),
        max_length=3,
        widget=forms.TextInput(attrs={**CURRENCY, "placeholder": "USD", "aria-label": _("Converted to")}),
    )
    day = forms.CharField(label=_("Day"), max_length=10, widget=forms.TextInput(attrs={"type": "date"}))
    source = forms.CharField(
        label=_("Source"),
        max_length=SOURCE_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("bank, web page, invoice")}),
    )

    @property
    def equation(self) -> Sequence[forms.BoundField]:
        """The fields that the page shows on one line, as in 1 USD = 7.1 CNY."""
        return (self["currency"], self["rate"], self["into"])

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    def clean_into(self) -> str:
        return str(self.cleaned_data["into"]).upper()
