"""Actions on the budgets of teams, projects and end users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.services.agents import LabelKind
from capabilities.errors import InvalidError
from capabilities.models import Agent
from routing_admin.configuration.revisions import ledger
from routing_admin.models import LabelBudget


def save_budget(actor: Actor, kind: LabelKind, name: str, limits: Mapping[str, Any]) -> AuditedAction:
    """Save a budget for the team or project `name`, or for each end user of the agent `name`. It applies at once.

    Raise `InvalidError` if the budget has no limit or the agent is unknown.
    """
    if not limits:
        raise InvalidError(
            [Problem("requestsPerMinute", _("Set at least one limit, or delete the budget."), "required")]
        )
    if kind is LabelKind.USER and not Agent.objects.filter(agent_id=name).exists():
        raise InvalidError([Problem("name", _("There is no agent %(id)s.") % {"id": name}, "reference")])
    label = f"{kind}:{name}"
    with ledger.change(actor, AuditedAction("budget.save", "budget", label)) as act:
        row = LabelBudget.objects.filter(label=label).first() or LabelBudget(label=label, version=0)
        row.limits, row.version = dict(limits), row.version + 1
        row.save()
    return act


def delete_budget(actor: Actor, label: str) -> AuditedAction:
    """Delete a budget. It no longer limits or counts the calls of its team, project or end users."""
    with ledger.change(actor, AuditedAction("budget.delete", "budget", label)) as act:
        LabelBudget.objects.filter(label=label).delete()
    return act
