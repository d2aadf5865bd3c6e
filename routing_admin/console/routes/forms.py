"""Forms for a task route, a candidate, and an alias."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from capabilities.core.storable import is_storable
from capabilities.core.values import MAX_SECONDS, MAX_TOKENS, RETRIES, SHORTEST_SECONDS, TEMPERATURE
from routing_admin.configuration import snapshot
from routing_admin.console.base.content_policies import HtmlFormField, TextLimitField, policy_choices
from routing_admin.console.base.form_fields import Combobox, JsonObjectField
from routing_admin.core.configuration.specs import NO_DIRECTIVE, REFUSE, SKIP
from routing_admin.core.fallback.policy import ErrorPreset
from routing_admin.core.planning.model_names import MAX_NAME, is_target

PRESETS = (
    (ErrorPreset.SEED.value, _("standard: retry, then next candidate")),
    (ErrorPreset.RESILIENT.value, _("resilient: next candidate also on 401, 403, 404, 413, 422")),
    (ErrorPreset.STRICT.value, _("strict: retry every 429 and 5xx")),
)
DROPS = (
    ("", _("leave it out and tell the caller")),
    (REFUSE, _("skip the model")),
)
OVERFLOWS = (
    ("", _("try it anyway")),
    (SKIP, _("skip it if another model can take it")),
)

DIRECTIVES = (
    ("", _("the request's, else the default")),
    (NO_DIRECTIVE, _("as the caller wrote, without a directive")),
)

ANSWERS = (
    ("", _("one answer per request")),
    ("yes", _("up to 8, each a call of its own")),
)

SECONDS = (SHORTEST_SECONDS, MAX_SECONDS)


class Number(forms.FloatField):
    """A narrow field for a number. An empty field means None, which differs from 0."""

    def __init__(self, *, between: tuple[float, float], inherited: str = "", **options: Any) -> None:
        attrs = {"class": "num", "inputmode": "decimal", "placeholder": inherited, "autocomplete": "off"}
        minimum, maximum = between
        widget = forms.TextInput(attrs=attrs)
        super().__init__(required=False, min_value=minimum, max_value=maximum, widget=widget, **options)


class WholeNumber(forms.IntegerField):
    def __init__(self, *, between: tuple[int, int], inherited: str = "", **options: Any) -> None:
        attrs = {"class": "num", "inputmode": "numeric", "placeholder": inherited, "autocomplete": "off"}
        minimum, maximum = between
        widget = forms.TextInput(attrs=attrs)
        super().__init__(required=False, min_value=minimum, max_value=maximum, widget=widget, **options)


def text_that_can_be_stored(value: str) -> None:
    if not is_storable(value):
        raise ValidationError(_("It contains a character that cannot be stored."))


class RouteForm(forms.Form):
    """The form for a route's own fields. Each candidate has a `CandidateForm`."""

    task_type = forms.CharField(label=_("Task type"), max_length=200, validators=[text_that_can_be_stored])
    enabled = forms.BooleanField(label=_("Enabled"), required=False)
    temperature = Number(label=_("Temperature"), between=TEMPERATURE)
    max_tokens = WholeNumber(label=_("Max tokens"), between=MAX_TOKENS)
    retries = WholeNumber(label=_("Retries per candidate"), between=RETRIES, inherited="2")
    first_content = Number(label=_("First content, seconds"), between=SECONDS, inherited="120")
    deadline = Number(label=_("Total deadline, seconds"), between=SECONDS, inherited="600")
    keep_alive_seconds = Number(
        label=_("Keep-alive comments after, seconds"),
        between=(0, MAX_SECONDS),
        inherited=f"{settings.KEEP_ALIVE_SECONDS:g}",
    )
    preset = forms.ChoiceField(label=_("Preset"), choices=PRESETS)
    on_drop = forms.ChoiceField(label=_("What a model does not accept"), choices=DROPS, required=False)
    on_overflow = forms.ChoiceField(label=_("A request too long for a model"), choices=OVERFLOWS, required=False)
    directive = forms.ChoiceField(label=_("Language of the answer"), choices=DIRECTIVES, required=False)
    allow_n = forms.ChoiceField(label=_("Several answers (n)"), choices=ANSWERS, required=False)
    policy = forms.ChoiceField(
        label=_("Files that a model cannot read"),
        choices=policy_choices(_("as set by each model service")),
        required=False,
        help_text=_("Content policy"),
    )
    text = TextLimitField(_("as set by each model service"))
    html = HtmlFormField(_("as set by each model service"))


class CandidateForm(forms.Form):
    """The form on a candidate's card: provider and model, and the candidate's own parameters."""

    provider = forms.CharField(widget=forms.HiddenInput)
    model = forms.CharField(widget=forms.HiddenInput, required=False)
    temperature = Number(label=_("Temperature"), between=TEMPERATURE)
    max_tokens = WholeNumber(label=_("Max tokens"), between=MAX_TOKENS)
    extra_body = JsonObjectField(
        label=_("Additional request fields (JSON)"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "{}", "inputmode": "text"}),
    )

    @property
    def has_own(self) -> bool:
        """Return whether any parameter has a value or an error. If so, the parameters are shown expanded."""
        return any(
            self[name].value() not in (None, "", {}) or self[name].errors
            for name in ("temperature", "max_tokens", "extra_body")
        )


class AliasForm(forms.Form):
    """The form for an alias: another name for a route or a model service."""

    name = forms.CharField(
        label=pgettext_lazy("alias", "Model name callers use"), max_length=200, validators=[text_that_can_be_stored]
    )
    target = forms.CharField(
        label=pgettext_lazy("alias", "Points to"),
        max_length=MAX_NAME,
        validators=[text_that_can_be_stored],
        widget=Combobox("target"),
    )

    def clean_target(self) -> str:
        target = str(self.cleaned_data["target"])
        if not is_target(snapshot.current().configuration, target):
            raise ValidationError(_("No task route or model service has this name."))
        return target
