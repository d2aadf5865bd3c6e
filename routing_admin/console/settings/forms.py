"""Forms of the settings page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from capabilities.core.exchange import SOURCE_CHARS
from routing_admin.configuration.installation import Keeping
from routing_admin.console.base.content_policies import policy_choices
from routing_admin.console.base.schemas import CENTURY_DAYS, MEBIBYTE

CURRENCY = {"class": "input num", "placeholder": "USD", "autocomplete": "off", "spellcheck": "false"}
AMOUNT = {"class": "input num", "placeholder": "7.1", "inputmode": "decimal", "autocomplete": "off"}
PLAIN = {"class": "num", "inputmode": "numeric", "autocomplete": "off"}


class DefaultLanguageForm(forms.Form):
    """The language of requests that name none."""

    default_language = forms.ChoiceField(label=_("Default language"), required=False)

    def __init__(self, *args: Any, codes: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["default_language"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above, for the type checker
        field.choices = [("", _("none (then en)")), *((code, code) for code in codes)]


class ContentPolicyForm(forms.Form):
    """What is done about a file that a model cannot read."""

    content_policy = forms.ChoiceField(label=_("Files that a model cannot read"), choices=policy_choices())


class LanguageForm(forms.Form):
    """A language and the directive that models get for it."""

    code = forms.CharField(
        label=_("Code"),
        max_length=35,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    directive = forms.CharField(
        label=_("Directive"),
        max_length=500,
        help_text=_("Placed before the system prompt, such as Responda em português."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class ExchangeRateForm(forms.Form):
    """The value of one unit of a currency in another, with its day and source."""

    currency = forms.CharField(
        label=_("Currency"), max_length=3, widget=forms.TextInput(attrs={**CURRENCY, "aria-label": _("Currency")})
    )
    rate = forms.CharField(
        label=_("Rate"), max_length=20, widget=forms.TextInput(attrs={**AMOUNT, "aria-label": _("Rate")})
    )
    into = forms.CharField(
        label=_("Converted to"),
        max_length=3,
        widget=forms.TextInput(attrs={**CURRENCY, "placeholder": "CNY", "aria-label": _("Converted to")}),
    )
    day = forms.CharField(label=_("Day"), max_length=10, widget=forms.TextInput(attrs={"type": "date"}))
    source = forms.CharField(
        label=_("Source"),
        max_length=SOURCE_CHARS,
        help_text=_("For example the bank, a web page or an invoice."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    @property
    def equation(self) -> Sequence[forms.BoundField]:
        """The fields that the page shows as one line: 1 USD = 7.1 CNY."""
        return (self["currency"], self["rate"], self["into"])

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    def clean_into(self) -> str:
        return str(self.cleaned_data["into"]).upper()


class KeepingForm(forms.Form):
    """How long and how much is kept. An empty field means no limit. `expected` holds the values that were shown."""

    request_days = forms.IntegerField(
        label=_("Days requests are kept"), min_value=1, max_value=CENTURY_DAYS, widget=forms.TextInput(attrs=PLAIN)
    )
    artifact_days = forms.IntegerField(
        label=_("Days new artifacts are kept"),
        help_text=_("Empty: until deleted."),
        required=False,
        min_value=1,
        max_value=CENTURY_DAYS,
        widget=forms.TextInput(attrs=PLAIN),
    )
    quota = forms.IntegerField(
        label=_("Space for artifacts, MiB"),
        help_text=_("Empty: limited only by the disk. When it is used up, uploads are refused."),
        required=False,
        min_value=1,
        max_value=1024 * MEBIBYTE,
        widget=forms.TextInput(attrs=PLAIN),
    )
    agent_quota = forms.IntegerField(
        label=_("Space for each agent's artifacts, MiB"),
        help_text=_("Empty: no limit per agent. When it is used up, the agent's uploads are refused."),
        required=False,
        min_value=1,
        max_value=1024 * MEBIBYTE,
        widget=forms.TextInput(attrs=PLAIN),
    )
    expected = forms.CharField(widget=forms.HiddenInput, required=False)

    @classmethod
    def from_keeping(cls, keeping: Keeping) -> KeepingForm:
        return cls(
            initial={
                "request_days": keeping.request_days,
                "artifact_days": keeping.artifact_days,
                "quota": keeping.quota_bytes // MEBIBYTE if keeping.quota_bytes else None,
                "agent_quota": keeping.agent_quota_bytes // MEBIBYTE if keeping.agent_quota_bytes else None,
                "expected": write_keeping(keeping),
            }
        )

    def to_keeping(self) -> Keeping:
        quota, agent_quota = self.cleaned_data["quota"], self.cleaned_data["agent_quota"]
        return Keeping(
            self.cleaned_data["request_days"],
            self.cleaned_data["artifact_days"],
            quota * MEBIBYTE if quota else None,
            agent_quota * MEBIBYTE if agent_quota else None,
        )


def write_keeping(keeping: Keeping) -> str:
    return f"{keeping.request_days} {keeping.artifact_days} {keeping.quota_bytes} {keeping.agent_quota_bytes}"
