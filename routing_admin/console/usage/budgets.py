"""The page of budgets: limits of teams, projects and end users, and how much of them is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import request_actor
from capabilities.core.services.agent_limits import CURRENCY, MONEY, Meter
from capabilities.core.services.agents import LabelKind
from capabilities.errors import ActionError
from routing_admin.console.base.form_fields import LIMITS
from routing_admin.console.base.lists import Choice, Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import UNPROCESSABLE, add_refusal, add_toast, wants_fragment
from routing_admin.console.usage.actions import delete_budget, save_budget
from routing_admin.console.usage.forms import KINDS, METERS, BudgetForm
from routing_admin.console.usage.queries import BudgetLine, list_budgets
from routing_admin.limits.headers import WARN_PERCENT

USED_UP, LOW, LEFT, EACH = "used_up", "low", "left", "each"
STATES: Mapping[str, Promise] = {
    USED_UP: gettext_lazy("used up"),
    LOW: gettext_lazy("running out"),
    LEFT: gettext_lazy("within the limits"),
    EACH: gettext_lazy("one for each user"),
}


def _state(line: BudgetLine) -> str:
    if line.kind is LabelKind.USER:
        return EACH
    return USED_UP if line.percent >= 100 else LOW if line.percent >= WARN_PERCENT else LEFT


COLUMNS: Mapping[str, Column[BudgetLine]] = {
    "name": Column(lambda line: natural_key(line.name)),
    "kind": Column(lambda line: list(KINDS).index(line.kind)),
    "used": Column(lambda line: line.percent, falling=True),
}
CHOICES: Sequence[Choice[BudgetLine]] = (
    Choice(
        name="kind",
        label=gettext_lazy("For"),
        everything=gettext_lazy("All kinds"),
        values={kind.value: label for kind, label in KINDS.items()},
        values_of=lambda line: (line.kind.value,),
    ),
    choose_state(STATES, lambda line: (_state(line),)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """A budget as shown: its limits and the usage of each, or only its limits if it applies to each end user."""

    line: BudgetLine
    kind: str | Promise
    form: BudgetForm
    uses: list[tuple[str | Promise, Any]]
    amounts: list[tuple[str | Promise, str]]
    url: str


@require_GET
def budgets(request: HttpRequest) -> HttpResponse:
    return budgets_page(request)


def budgets_page(request: HttpRequest, status: int = 200, **refused: BudgetForm) -> HttpResponse:
    listing = arrange(
        list_budgets(),
        request.GET,
        texts=lambda line: (line.name,),
        columns=COLUMNS,
        choices=CHOICES,
        sort="-used",
        per_page=page_size(request),
    )
    context = {
        "listing": listing,
        "list_url": reverse("budgets"),
        "rows": [make_row(number, line) for number, line in enumerate(listing.page)],
        "form": BudgetForm(),
        **refused,
    }
    template = "usage/budgets.html#rows" if wants_fragment(request) else "usage/budgets.html"
    return render(request, template, context, status=status)


def make_row(number: int, line: BudgetLine) -> BudgetRow:
    """Return the row for a budget. `number` makes the ids of the row's form unique on the page."""
    form = BudgetForm(auto_id=f"id_{number}_%s", initial={"kind": line.kind, "name": line.name}, limits=line.stored)
    uses = [(LIMITS[use.meter][0], use) for use in line.uses]
    amounts = [(LIMITS[meter][0], write_amount(meter, line.stored)) for meter in METERS if meter in line.stored]
    # The link leads to an agent's usage by end user, or to a team's or project's usage by agent.
    filters = {"by": "user"} if line.kind is LabelKind.USER else {"by": "agent", line.kind.value: line.name}
    return BudgetRow(
        line=line,
        kind=KINDS[line.kind],
        form=form,
        uses=uses,
        amounts=[] if uses else amounts,
        url=f"{reverse('usage')}?{urlencode(filters)}",
    )


def write_amount(meter: Meter, stored: Mapping[str, Any]) -> str:
    return f"{Decimal(str(stored[meter])):,} {stored[CURRENCY]}" if meter in MONEY else f"{stored[meter]:,}"


@require_POST
def budget_save(request: HttpRequest) -> HttpResponse:
    # A rejected form is shown again in the dialog from which it was posted: for a new budget, or for the edited one.
    dialog = "edited" if "edit" in request.POST else "form"
    form = BudgetForm(request.POST, auto_id=f"id_{dialog}_%s")
    if not form.is_valid():
        return budgets_page(request, UNPROCESSABLE, **{dialog: form})
    name = form.cleaned_data["name"]
    try:
        change = save_budget(request_actor(request), form.label_kind, name, form.limits)
    except ActionError as refusal:
        return budgets_page(request, add_refusal(form, refusal), **{dialog: form})
    add_toast(request, _("Budget of %(name)s saved") % {"name": name}, change.revision)
    return redirect("budgets")


@require_POST
def budget_delete(request: HttpRequest) -> HttpResponse:
    label = request.POST.get("label", "")
    change = delete_budget(request_actor(request), label)
    add_toast(request, _("Budget of %(name)s deleted") % {"name": label.partition(":")[2]}, change.revision)
    return redirect("budgets")
