"""Forms for a provider's key: its source, and the fields that the source requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.providers.environment import may_read, reference
from routing_admin.console.providers.actions import KeyAct, KeyChange

KEEP = (KeyAct.KEEP.value, gettext_lazy("Keep the current setting"))
KEY_ACTS = (
    (KeyAct.SET.value, gettext_lazy("Store a new key, encrypted")),
    (KeyAct.ENVIRONMENT.value, gettext_lazy("Read it from the environment")),
    (KeyAct.NONE.value, gettext_lazy("No key is needed")),
)
MAX_KEY_NAME = 60
FIELDS = {KeyAct.SET.value: ("key",), KeyAct.ENVIRONMENT.value: ("key_variable", "env_name")}
"""Maps each key source to the form fields that it needs. A form may lack some of these fields."""


@dataclass(frozen=True, slots=True)
class KeyOption:
    """A choice for a key's source: its radio button, its label, and the fields that it reveals."""

    radio: Any
    label: str
    fields: list[forms.BoundField]


class KeyNameForm(forms.Form):
    """The form for one of several keys: its name, and whether it is in rotation."""

    key = forms.CharField(widget=forms.HiddenInput)
    name = forms.CharField(label=gettext_lazy("Name"), max_length=MAX_KEY_NAME)
    enabled = forms.BooleanField(label=gettext_lazy("In rotation"), required=False)


class ProviderKeyForm(forms.Form):
    """The form for a key's source, used alone or as part of a provider's form.

    If no source is chosen, a key that was typed is stored.
    """

    key_act = forms.ChoiceField(
        label=gettext_lazy("Key"), choices=KEY_ACTS, required=False, widget=forms.RadioSelect, initial=KeyAct.SET.value
    )
    key = forms.CharField(
        label=gettext_lazy("New key"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Encrypted, and never shown again."),
    )
    key_variable = forms.CharField(
        label=gettext_lazy("Variable"),
        required=False,
        help_text=gettext_lazy("Such as LLM_PROVIDER_…_API_KEY. Empty: derived from the provider's name."),
    )

    key_act_unless_chosen = KeyAct.ENVIRONMENT
    """What happens to the key if no source was chosen and no key was typed."""

    def key_options(self) -> Iterator[KeyOption]:
        for radio in self["key_act"]:
            names = FIELDS.get(str(radio.data["value"]), ())
            fields = [self[name] for name in names if name in self.fields]
            yield KeyOption(radio.tag(), str(radio.choice_label), fields)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("key_act") == KeyAct.SET.value and not data.get("key"):
            self.add_error("key", _("Enter the key, or choose another way."))
        variable = data.get("key_variable")
        if data.get("key_act") == KeyAct.ENVIRONMENT.value and variable and not may_read(variable):
            self.add_error("key_variable", _("Only variables named LLM_PROVIDER_…_API_KEY may hold a provider key."))
        return data

    def key_change(self) -> KeyChange:
        text = self.cleaned_data["key"].strip()
        act = KeyAct(self.cleaned_data["key_act"] or self.key_act_unless_chosen)
        is_chosen = self.cleaned_data["key_act"] not in ("", KeyAct.KEEP.value)
        if text and not is_chosen:
            return KeyChange(KeyAct.SET, text)
        variable = self.cleaned_data["key_variable"].strip()
        variable_reference = reference(variable) if variable else ""
        return KeyChange(act, variable_reference if act is KeyAct.ENVIRONMENT else text)


class FurtherKeyForm(ProviderKeyForm):
    """The form for a further key of an existing provider."""

    prefix = "further"
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_KEY_NAME,
        required=False,
        help_text=gettext_lazy("Shown instead of the key in logs and on pages. Empty: a number."),
    )
    key_act = forms.ChoiceField(
        label=gettext_lazy("Key"),
        choices=KEY_ACTS[:2],
        required=False,
        widget=forms.RadioSelect,
        initial=KeyAct.SET.value,
    )
    key_variable = forms.CharField(
        label=gettext_lazy("Variable"),
        required=False,
        help_text=gettext_lazy("Such as LLM_PROVIDER_…_API_KEY_2. Empty: the next free number."),
    )
