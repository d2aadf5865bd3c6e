"""The form for the budget of a team, a project or end users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.services.agent_limits import Meter
from capabilities.core.services.agents import MAX_LABEL_CHARS, LabelKind, clean_label
from routing_admin.console.base.form_fields import check_unpriced, make_amount_fields, read_amounts

METERS = (
    Meter.REQUESTS_PER_MINUTE,
    Meter.TOKENS_PER_DAY,
    Meter.TOKENS_PER_MONTH,
    Meter.MONEY_PER_DAY,
    Meter.MONEY_PER_MONTH,
)
"""Limits that the budget of a team, project or end user can contain."""
KINDS = {
    LabelKind.TEAM: gettext_lazy("Team"),
    LabelKind.PROJECT: gettext_lazy("Project"),
    LabelKind.USER: gettext_lazy("Each end user of an agent"),
}
MAX_NAME = 120


class BudgetForm(forms.Form):
    """The form for a budget: its label (a team, a project, or an agent's end users) and its limits."""

    kind = forms.ChoiceField(label=gettext_lazy("For"), choices=[(kind.value, text) for kind, text in KINDS.items()])
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME,
        help_text=gettext_lazy("The team or project as sent in requests. For end users, the id of their agent."),
    )

    def __init__(self, *args: Any, limits: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.amounts = make_amount_fields(limits or {}, METERS)
        self.fields.update(self.amounts)

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.amounts]

    @property
    def label_kind(self) -> LabelKind:
        return LabelKind(self.cleaned_data["kind"])

    @property
    def limits(self) -> dict[str, Any]:
        return read_amounts(self.cleaned_data)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        check_unpriced(self, data)
        kind, name = data.get("kind"), data.get("name", "")
        # No request can carry such a label, so a budget for it would never apply.
        if kind in (LabelKind.TEAM, LabelKind.PROJECT) and clean_label(LabelKind(kind), name) != name:
            facts = {"most": MAX_LABEL_CHARS[LabelKind(kind)]}
            self.add_error("name", _("A label is one line of at most %(most)s characters.") % facts)
        return data
