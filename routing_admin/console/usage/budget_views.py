"""The page of labels' budgets: what teams, projects and end users may use, and what they used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import actor_of
from capabilities.core.services.agent_limits import CURRENCY, MONEY, Meter
from capabilities.errors import ActionError
from routing_admin.console.base.answers import UNPROCESSABLE, add_toast
from routing_admin.console.base.limit_forms import LIMITS
from routing_admin.console.base.refused_forms import add_refusal
from routing_admin.console.usage.budget_actions import delete_budget, save_budget
from routing_admin.console.usage.budget_forms import KINDS, METERS, BudgetForm
from routing_admin.console.usage.budget_queries import BudgetLine, list_budgets


@dataclass(frozen=True, slots=True)
class BudgetCard:
    """One budget as the page writes it: its limits with what is used, or the bare amounts where each user has them."""

    line: BudgetLine
    kind: str | Promise
    form: BudgetForm
    uses: list[tuple[str | Promise, Any]]
    amounts: list[tuple[str | Promise, str]]


@require_GET
def budgets(request: HttpRequest) -> HttpResponse:
    """Every budget, and a form for a new one."""
    return budgets_page(request)


def budgets_page(request: HttpRequest, *, form: BudgetForm | None = None, status: int = 200) -> HttpResponse:
    """The page, with the form that was refused where there is one."""
    cards = [make_card(number, line) for number, line in enumerate(list_budgets())]
    context = {"cards": cards, "form": form or BudgetForm(), "kinds": KINDS}
    return render(request, "usage/budgets.html", context, status=status)


def make_card(number: int, line: BudgetLine) -> BudgetCard:
    """One budget; `number` tells its form from others on the page."""
    form = BudgetForm(auto_id=f"id_{number}_%s", initial={"kind": line.kind, "name": line.name}, limits=line.stored)
    uses = [(LIMITS[use.meter][0], use) for use in line.uses]
    amounts = [(LIMITS[meter][0], write_amount(meter, line.stored)) for meter in METERS if meter in line.stored]
    return BudgetCard(line, KINDS[line.kind], form, uses, [] if uses else amounts)


def write_amount(meter: Meter, stored: Mapping[str, Any]) -> str:
    """A limit as people read it, money with its currency."""
    return f"{stored[meter]} {stored[CURRENCY]}" if meter in MONEY else f"{stored[meter]:,}"


@require_POST
def budget_save(request: HttpRequest) -> HttpResponse:
    """Sets a budget, a new one or another amount."""
    form = BudgetForm(request.POST)
    if not form.is_valid():
        return budgets_page(request, form=form, status=UNPROCESSABLE)
    name = form.cleaned_data["name"]
    try:
        made = save_budget(actor_of(request), form.label_kind, name, form.limits)
    except ActionError as refusal:
        return budgets_page(request, status=add_refusal(form, refusal), form=form)
    add_toast(request, _("Budget of %(name)s saved") % {"name": name}, made.revision)
    return redirect("budgets")


@require_POST
def budget_delete(request: HttpRequest) -> HttpResponse:
    """Takes a budget away."""
    label = request.POST.get("label", "")
    made = delete_budget(actor_of(request), label)
    add_toast(request, _("Budget of %(name)s removed") % {"name": label.partition(":")[2]}, made.revision)
    return redirect("budgets")
