"""The forms of agents' keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.permissions import DEFAULT_SCOPES, SCOPES
from capabilities.core.services.agent_limits import MODELS
from capabilities.core.services.key_terms import LIMITS
from capabilities.core.services.labels import LONGEST, LabelKind, clean_label
from routing_admin.console.base.limit_forms import (
    amounts_in,
    check_unpriced,
    make_amount_fields,
    make_models_field,
    models_in,
)

SCOPE_MEANINGS: dict[str, str | Promise] = {
    "route": gettext_lazy("call models"),
    "artifacts:read": gettext_lazy("read artifacts by reference"),
    "artifacts:write": gettext_lazy("store artifacts and delete its own"),
    "registry:read": gettext_lazy("see services, agents, routes and providers"),
    "agents:write": gettext_lazy("create agents at run time and act for them"),
    "config:read": gettext_lazy("export the configuration"),
    "config:write": gettext_lazy("import a configuration"),
}
"""What each scope lets a key do."""


class KeyTermsForm(forms.Form):
    """What a key is for, how its calls are labelled, and what it may use of what its agent may.

    `terms` are the stored ones; `prefix` tells the forms of several keys on one page apart.
    """

    label = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("Shown to people only."),
    )
    team = forms.CharField(
        label=gettext_lazy("Team"),
        max_length=LONGEST[LabelKind.TEAM],
        required=False,
        help_text=gettext_lazy("All its calls count for this team, whatever they claim."),
    )
    project = forms.CharField(label=gettext_lazy("Project"), max_length=LONGEST[LabelKind.PROJECT], required=False)

    def __init__(self, *args: Any, terms: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = terms or {}
        limits = stored.get(LIMITS, {})
        for name in (LabelKind.TEAM, LabelKind.PROJECT):
            self.fields[name.value].initial = stored.get(name.value, "")
        hint = gettext_lazy("One per line, as for the agent. Empty: everything the agent may use.")
        self.fields[MODELS] = make_models_field(limits, hint)
        self.amounts = make_amount_fields(limits)
        self.fields.update(self.amounts)

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        """The fields of the amounts, in their order."""
        return [self[name] for name in self.amounts]

    @property
    def terms(self) -> dict[str, Any]:
        """What was entered, as a key's row keeps it."""
        data = self.cleaned_data
        labels = {name.value: data[name.value] for name in (LabelKind.TEAM, LabelKind.PROJECT) if data[name.value]}
        limits = models_in(data) | amounts_in(data)
        return labels | ({LIMITS: limits} if limits else {})

    def clean(self) -> dict[str, Any]:
        """The terms, where they fit one another."""
        data = super().clean() or {}
        check_unpriced(self, data)
        return data

    def clean_team(self) -> str:
        """The team in one line."""
        return clean_label(LabelKind.TEAM, self.cleaned_data["team"])

    def clean_project(self) -> str:
        """The project in one line."""
        return clean_label(LabelKind.PROJECT, self.cleaned_data["project"])


class KeyForm(KeyTermsForm):
    """A new key: what it may do, what it is for, when it ends, and its terms."""

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

    @property
    def scope_boxes(self) -> list[tuple[str, str | Promise, bool]]:
        """The scopes with what each means and whether it is ticked."""
        ticked = self["scopes"].value() or []
        return [(scope, SCOPE_MEANINGS[scope], scope in ticked) for scope in SCOPES]

    @property
    def expires_at(self) -> datetime | None:
        """When the key ends."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
