"""Forms for a provider: endpoint, key, timeouts, and compatibility options for deviations from its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.protocols import PROTOCOLS as WIRE_PROTOCOLS
from capabilities.core.protocols.vendor_tools import FIELDS, allowed_tool_names
from capabilities.core.providers.origins import UNUSABLE, find_malformation
from capabilities.core.providers.presets import BY_NAME, PRESETS, HostPreset, quirks_for
from capabilities.core.providers.quirks import QUIRKS, Quirk, check_quirks
from capabilities.core.translatable import translatable
from capabilities.models import Provider
from capabilities.sentences import translate_sentence
from routing_admin.console.base.form_fields import check_new_name, make_timeout_fields, read_timeouts, timeout_fields
from routing_admin.console.providers.actions import KeyAct
from routing_admin.console.providers.key_forms import KEEP, KEY_ACTS, ProviderKeyForm
from routing_admin.console.providers.queries import provider_exists

if TYPE_CHECKING:
    ProviderModelForm = forms.ModelForm[Provider]
else:
    ProviderModelForm = forms.ModelForm


NO_TOOLS = "none"
"""Form value for an empty list of tools, because an empty field means the default."""
PROTOCOLS = [(name, name) for name in WIRE_PROTOCOLS]
QUIRK_MEANINGS: dict[str, str | Promise] = {
    "image_url_as_string": gettext_lazy("Images are sent as a plain URL string instead of an object."),
    "no_remote_image_urls": gettext_lazy("Images are sent as data only; URLs are sent as text."),
    "max_tokens_field": gettext_lazy("The parameter for the maximum answer length."),
    "drop_params": gettext_lazy("Parameters left out of every call. Token limits are always sent."),
    "system_role": gettext_lazy("How system messages are sent."),
    "string_content_only": gettext_lazy("Every message is a single string; no media can be sent."),
    "input_audio_shape": gettext_lazy("How audio is sent."),
    "file_part": gettext_lazy("How documents are sent."),
    "file_urls": gettext_lazy("Documents can be sent by URL."),
    "video_part": gettext_lazy("How videos are sent."),
    "tool_media": gettext_lazy(
        "Media in a tool result stays there, moves to a user message after it, or becomes a line of text."
    ),
    "structured": gettext_lazy("How JSON answers are requested."),
    "replay_reasoning": gettext_lazy("How earlier reasoning is sent in the history."),
    "reasoning_field": gettext_lazy("The field for reasoning."),
    "cache_marks": gettext_lazy("How the end of a cacheable prefix is marked."),
    "short_call_ids": gettext_lazy("Tool call ids have nine letters and digits."),
    "call_signatures": gettext_lazy(
        "Tool calls in the history carry Google's thought signature, or a placeholder for it."
    ),
    "request_id_header": gettext_lazy("The header for the request id, for support questions to the vendor."),
    "trace_context": gettext_lazy("The caller's trace (traceparent) is passed on."),
    "stream_usage": gettext_lazy("Streams are asked to report token usage."),
    "sampling": gettext_lazy("Temperature and top_p are sent."),
    "anthropic_version": gettext_lazy("The API version to request."),
}
"""Translated explanations of compatibility options. An option without one is explained by its own English sentence."""


def example_preset(protocol: str) -> HostPreset:
    """Return the first preset with this protocol and a list of models, or OpenAI's preset if there is none."""
    return next((preset for preset in PRESETS if preset.protocol == protocol and preset.models), BY_NAME["openai"])


def show_examples(form: forms.BaseForm, protocol: str) -> None:
    """Set the placeholders for endpoint and model to those of a vendor that uses this protocol."""
    example = example_preset(protocol)
    form.fields["endpoint"].widget.attrs["placeholder"] = example.base_url
    form.fields["default_model"].widget.attrs["placeholder"] = example.models[0]


def write_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)


def quirk_field(quirk: Quirk, in_effect: str) -> forms.Field:
    """Return the form field for a compatibility option. Its empty choice shows which default applies."""
    unset = _("default (%(value)s)") % {"value": in_effect or _("none")}
    help_text = str(QUIRK_MEANINGS.get(quirk.name, quirk.meaning))
    if quirk.kind in ("list", "text"):
        box = forms.TextInput(attrs={"placeholder": unset})
        return forms.CharField(label=quirk.name, required=False, widget=box, help_text=help_text)
    values = ("true", "false") if quirk.kind == "flag" else quirk.values
    choices = [("", unset), *((word, word) for word in values)]
    return forms.ChoiceField(label=quirk.name, required=False, choices=choices, help_text=help_text)


def quirk_value(quirk: Quirk, text: str) -> Any:
    """Convert the text of a form field to the option's value. None means the default."""
    if not text:
        return None
    if quirk.kind == "flag":
        return text == "true"
    return list_words(text) if quirk.kind == "list" else text


def list_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class ProviderForm(ProviderModelForm, ProviderKeyForm):
    """The form for an existing provider. Its name cannot change, because chains and files refer to it."""

    protocol = forms.ChoiceField(
        label=gettext_lazy("Protocol"),
        choices=PROTOCOLS,
        help_text=gettext_lazy("The API format. Most providers use openai."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)
    vendor_tools = forms.CharField(
        label=gettext_lazy("The vendor's own tools"),
        required=False,
        help_text=gettext_lazy(
            "Which of its API's own tools, fields and betas callers may use here, separated by commas; * for all, "
            "none for none. What is not allowed is left out, and x-routing-dropped names it."
        ),
    )

    key_act_unless_chosen = KeyAct.KEEP

    class Meta:
        model = Provider
        fields = ["display_name", "protocol", "endpoint", "default_model", "enabled", "env_name", "proxy"]
        labels = {
            "display_name": gettext_lazy("Display name"),
            "endpoint": gettext_lazy("Base URL"),
            "default_model": gettext_lazy("Default model"),
            "enabled": gettext_lazy("Enabled"),
            "env_name": gettext_lazy("Name in environment variables"),
            "proxy": gettext_lazy("Outgoing proxy"),
        }
        help_texts = {
            "endpoint": gettext_lazy("The protocol's path is added automatically unless the URL already ends with it."),
            "default_model": gettext_lazy("Used when a candidate names no model."),
            "env_name": gettext_lazy(
                "Replaces NAME in LLM_PROVIDER_NAME_API_KEY if the provider's name cannot be used."
            ),
            "proxy": gettext_lazy("default, none, or a URL such as http://proxy.example:3128"),
        }

    def __init__(self, *args: Any, offered: Mapping[str, Any] = MappingProxyType({}), **kwargs: Any) -> None:
        """Build the form. `offered` contains option values that a connection test found and that are not saved yet."""
        super().__init__(*args, **kwargs)
        row = self.instance
        self.offered = bool(offered)
        self.fields["proxy"].required = False
        self.fields["proxy"].widget.attrs["data-secret"] = True  # The URL of a proxy may contain a password.
        self.fields["version"].initial = row.version
        vendor_tools, default = row.vendor_tools, sorted(allowed_tool_names(row.protocol, row.endpoint, None))
        self.fields["vendor_tools"].initial = "" if vendor_tools is None else write_value(vendor_tools) or NO_TOOLS
        unset = _("default (%(value)s)") % {"value": write_value(default) or _("none")}
        self.fields["vendor_tools"].widget.attrs["placeholder"] = unset
        self.fields["key_variable"].initial = row.key_variable
        self.fields["key_act"] = forms.ChoiceField(
            label=_("Key"), choices=(KEEP, *KEY_ACTS), required=False, widget=forms.RadioSelect, initial=KEEP[0]
        )
        hosts = quirks_for(row.endpoint, {})
        for name, quirk in QUIRKS.items():
            default = hosts.get(name, quirk.by_protocol.get(row.protocol, quirk.default))
            field_name = f"quirk_{name}"
            field = self.fields[field_name] = quirk_field(quirk, write_value(default))
            stored = write_value(row.quirks[name]) if row.quirks.get(name) is not None else ""
            field.initial = offered.get(field_name, stored)
        self.fields.update(make_timeout_fields(row.timeouts))
        show_examples(self, row.protocol)

    @property
    def quirk_fields(self) -> list[forms.BoundField]:
        # Options for other protocols have no effect, so they are hidden.
        protocol = str(self["protocol"].value() or "openai")
        fields = [self[f"quirk_{name}"] for name, quirk in QUIRKS.items() if protocol in quirk.protocols]
        return [*fields, self["vendor_tools"]] if protocol in FIELDS else fields

    @property
    def timeout_fields(self) -> list[forms.BoundField]:
        return timeout_fields(self)

    def clean_endpoint(self) -> str:
        endpoint = str(self.cleaned_data["endpoint"]).strip()
        if not endpoint.startswith(("https://", "http://", "echo://")):
            example = example_preset(str(self.data.get("protocol", ""))).base_url
            raise forms.ValidationError(
                _("Must begin with https:// or http://, for example %(url)s") % {"url": example}
            )
        malformed = find_malformation(endpoint)
        if malformed:
            raise forms.ValidationError(translate_sentence(translatable(UNUSABLE, reason=malformed)))
        return endpoint

    def clean_proxy(self) -> str:
        proxy = str(self.cleaned_data["proxy"]).strip() or "default"
        if proxy not in ("default", "none") and not proxy.startswith(("http://", "https://")):
            raise forms.ValidationError(_("Write default, none, or a URL that begins with http:// or https://."))
        return proxy

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for problem in check_quirks(self.quirks()):
            name = "quirk_" + problem.field.removeprefix("quirks.")
            if problem.severity == "error" and name in self.fields:
                self.add_error(name, _("This value is not allowed here."))
        return data

    def quirks(self) -> dict[str, Any]:
        # Keep unknown options, which a newer version of this program may have written.
        unknown = {name: value for name, value in self.instance.quirks.items() if name not in QUIRKS}
        entered = {
            name: quirk_value(quirk, self.cleaned_data.get(f"quirk_{name}", "")) for name, quirk in QUIRKS.items()
        }
        return unknown | {name: value for name, value in entered.items() if value is not None}

    def build_row(self) -> Provider:
        row = self.save(commit=False)
        row.quirks = self.quirks()
        # An empty list allows no tool, while None means the default.
        tools = list_words(self.cleaned_data["vendor_tools"])
        row.vendor_tools = [] if tools == [NO_TOOLS] else tools or None
        row.timeouts = read_timeouts(self.cleaned_data, row.timeouts)
        return row


class NewProviderForm(ProviderKeyForm):
    """The first step of adding a provider: its name, endpoint and key."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        help_text=gettext_lazy("The name used in chains and files, such as deepseek. You cannot change it later."),
    )
    display_name = forms.CharField(label=gettext_lazy("Display name"), max_length=200, required=False)
    protocol = forms.ChoiceField(label=gettext_lazy("Protocol"), choices=PROTOCOLS)
    endpoint = forms.CharField(label=gettext_lazy("Base URL"), max_length=500)
    default_model = forms.CharField(
        label=gettext_lazy("Default model"),
        max_length=200,
        help_text=gettext_lazy("Used when a candidate names no model, and by the connection test."),
    )

    def clean_name(self) -> str:
        # Chains refer to candidates as provider/model, so the name must not contain a slash.
        name = str(self.cleaned_data["name"]).strip()
        if "/" in name:
            raise forms.ValidationError(_("A provider's name cannot contain a slash."))
        check_new_name(name)
        if provider_exists(name):
            raise forms.ValidationError(_("A provider with this name already exists."))
        return name

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        show_examples(self, str(self["protocol"].value() or ""))

    clean_endpoint = ProviderForm.clean_endpoint

    def build_row(self) -> Provider:
        """Return the new provider's row, unsaved."""
        data = self.cleaned_data
        names = ("name", "display_name", "protocol", "endpoint", "default_model")
        return Provider(**{name: data[name] for name in names})
