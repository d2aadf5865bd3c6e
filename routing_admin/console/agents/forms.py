"""Forms for an agent, its keys, and the links to its own page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.permissions import DEFAULT_SCOPES, SCOPES
from capabilities.core.services.agent_limits import MODELS
from capabilities.core.services.agents import LIMITS, MAX_LABEL_CHARS, LabelKind, clean_label
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.console.base.form_fields import (
    Combobox,
    check_new_name,
    check_unpriced,
    make_amount_fields,
    make_models_field,
    read_amounts,
    read_models,
)
from routing_admin.console.services.queries import select_services

if TYPE_CHECKING:
    AgentModelForm = forms.ModelForm[Agent]
else:
    AgentModelForm = forms.ModelForm


class AgentForm(AgentModelForm):
    """The form for an agent that an administrator manages. An existing agent's id cannot be changed."""

    service = forms.ModelChoiceField(
        select_services(),
        label=gettext_lazy("Model service"),
        required=False,
        to_field_name="service_id",
        widget=Combobox("service"),
        error_messages={"invalid_choice": gettext_lazy("No model service has this id.")},
    )
    task_type = forms.CharField(
        label=gettext_lazy("Task route"),
        required=False,
        widget=Combobox("task"),
        help_text=gettext_lazy("Instead of a model service. Starts with the first available candidate."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Agent
        fields = ["agent_id", "name", "description", "service", "task_type"]
        labels = {
            "agent_id": gettext_lazy("Id"),
            "name": gettext_lazy("Name"),
            "description": gettext_lazy("Description"),
        }
        error_messages = {"agent_id": {"unique": gettext_lazy("An agent with this id already exists.")}}
        help_texts = {"agent_id": gettext_lazy("Models see it when they choose an agent to forward to.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent_id"].validators.append(check_new_name)
        if self.instance.pk:
            del self.fields["agent_id"]
        self.fields["version"].initial = self.instance.version
        self.initial["service"] = self.instance.service
        self.amounts = make_amount_fields(self.instance.limits)
        if self.instance.origin == Agent.Origin.RUNTIME:  # An agent created at run time has its creator's limits.
            self.amounts = {}
        else:
            hint = gettext_lazy("task:<task type> or a model service id. Empty: all.")
            self.fields[MODELS] = make_models_field(self.instance.limits, hint)
        self.fields.update(self.amounts)

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.amounts]

    @property
    def has_limits(self) -> bool:
        """Return whether any limit has a value or an error. If so, the form shows the limits expanded."""
        return bool(self.instance.limits) or not {MODELS, *self.amounts}.isdisjoint(self.errors)

    def clean_task_type(self) -> str:
        task_type = str(self.cleaned_data["task_type"])
        if task_type and snapshot.current().configuration.route(task_type) is None:
            raise forms.ValidationError(_("No task route has this name."))
        return task_type

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if MODELS in self.fields:
            check_unpriced(self, data)
            self.instance.limits = read_models(data) | read_amounts(data)
        if data.get("service") and data.get("task_type"):
            self.add_error("task_type", _("An agent uses a service or a task route, not both."))
        return data


SCOPE_MEANINGS: dict[str, str | Promise] = {
    "route": gettext_lazy("call models"),
    "artifacts:read": gettext_lazy("read artifacts by reference"),
    "artifacts:write": gettext_lazy("store artifacts and delete its own"),
    "registry:read": gettext_lazy("see services, agents, routes and providers"),
    "agents:write": gettext_lazy("create agents at run time and act for them"),
    "config:read": gettext_lazy("export the configuration"),
    "config:write": gettext_lazy("import a configuration"),
}
"""Maps each key scope to a description of what it permits."""


class KeyTermsForm(forms.Form):
    """The form for a key's label, team, project and limits, which cannot exceed the agent's limits.

    `terms` contains the stored values. `prefix` distinguishes the forms of several keys on one page.
    """

    label = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("Shown to people only."),
    )
    team = forms.CharField(
        label=gettext_lazy("Team"),
        max_length=MAX_LABEL_CHARS[LabelKind.TEAM],
        required=False,
        help_text=gettext_lazy("All calls with this key count for this team, even if a request names another."),
    )
    project = forms.CharField(
        label=gettext_lazy("Project"), max_length=MAX_LABEL_CHARS[LabelKind.PROJECT], required=False
    )

    def __init__(self, *args: Any, terms: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = terms or {}
        limits = stored.get(LIMITS, {})
        for name in (LabelKind.TEAM, LabelKind.PROJECT):
            self.fields[name.value].initial = stored.get(name.value, "")
        hint = gettext_lazy("As for the agent. Empty: everything the agent may use.")
        self.fields[MODELS] = make_models_field(limits, hint)
        self.amounts = make_amount_fields(limits)
        self.fields.update(self.amounts)

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.amounts]

    @property
    def terms(self) -> dict[str, Any]:
        data = self.cleaned_data
        labels = {name.value: data[name.value] for name in (LabelKind.TEAM, LabelKind.PROJECT) if data[name.value]}
        limits = read_models(data) | read_amounts(data)
        return labels | ({LIMITS: limits} if limits else {})

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        check_unpriced(self, data)
        return data

    def clean_team(self) -> str:
        return clean_label(LabelKind.TEAM, self.cleaned_data["team"])

    def clean_project(self) -> str:
        return clean_label(LabelKind.PROJECT, self.cleaned_data["project"])


class KeyForm(KeyTermsForm):
    """The form for a new key: its scopes, its expiry, and the fields of `KeyTermsForm`."""

    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=[(scope, scope) for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        initial=list(DEFAULT_SCOPES),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Expires after (days)"),
        required=False,
        min_value=1,
        max_value=3650,
        help_text=gettext_lazy("Empty: never."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The agent's form on the same page has fields with the same names, so this form's fields need different ids.
        super().__init__(*args, auto_id="id_key_%s", **kwargs)

    @property
    def scope_boxes(self) -> list[tuple[str, str | Promise, bool]]:
        ticked = self["scopes"].value() or []
        return [(scope, SCOPE_MEANINGS[scope], scope in ticked) for scope in SCOPES]

    @property
    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None


class AgentLinkForm(forms.Form):
    """The form for a link to an agent's own page: recipient, expiry, and whether it shows recorded bodies."""

    name = forms.CharField(
        label=gettext_lazy("Recipient"),
        max_length=100,
        help_text=gettext_lazy("Only administrators read it."),
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"),
        choices=[
            ("7", gettext_lazy("7 days")),
            ("30", gettext_lazy("30 days")),
            ("90", gettext_lazy("90 days")),
            ("0", gettext_lazy("until it is revoked")),
        ],
        initial="90",
        coerce=int,
    )
    with_bodies = forms.BooleanField(
        label=gettext_lazy("With recorded bodies"),
        required=False,
        help_text=gettext_lazy("Includes what was sent and answered, if Settings have it recorded."),
    )

    @property
    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
