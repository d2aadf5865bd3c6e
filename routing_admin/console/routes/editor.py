"""The chain editor of a task route. All edits are a draft until Save, which creates one revision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_http_methods

from capabilities.access import can_edit, may, request_actor
from capabilities.core.permissions import PagePart
from capabilities.core.side_by_side import SideBySideRow
from capabilities.core.wire import Failure, Fault
from capabilities.errors import ActionError, ConflictError
from capabilities.sentences import translate_refusal
from routing_admin.configuration import snapshot
from routing_admin.configuration.rows.reading import route_spec
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.consequences import find_deletion_consequences, find_obstacle
from routing_admin.console.base.form_fields import check_new_name
from routing_admin.console.base.page_responses import add_toast
from routing_admin.console.base.saving import FormProblem, list_problems
from routing_admin.console.catalogue.queries import list_route_endings
from routing_admin.console.routes import errors
from routing_admin.console.routes import phrases as words
from routing_admin.console.routes.actions import check_can_delete_route, save_route_as
from routing_admin.console.routes.draft import (
    NUMBERS,
    CandidateDraft,
    Draft,
    EditorAction,
    apply_action,
    build_draft,
    focus_after,
    read_action,
    read_draft,
)
from routing_admin.console.routes.queries import find_route, find_route_with_chain
from routing_admin.console.routes.retrospect import render_retrospective
from routing_admin.console.services.queries import map_drifts
from routing_admin.console.simulate.panel import Panel, read_panel, set_outcomes
from routing_admin.console.simulate.runs import run_simulation, send
from routing_admin.core.configuration.route_changes import candidate_name, route_changes, with_route
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.policy import Policy
from routing_admin.core.fallback.table import Action
from routing_admin.core.files.entries import side_by_side
from routing_admin.core.planning.lint import CheckedCandidate, lint
from routing_admin.core.planning.plan import route_policy
from routing_admin.dispatch.decisions import unusable_providers

if TYPE_CHECKING:
    from routing_admin.models import TaskRoute

NEW_ROUTE = RouteSpec("", ())
CONDITIONS = (
    ("429", Failure(Fault.HTTP_429, status=429)),
    ("5xx", Failure(Fault.HTTP_500, status=500)),
    ("timeout", Failure(Fault.READ_TIMEOUT)),
    ("network", Failure(Fault.CONNECT_REFUSED)),
    ("402", Failure(Fault.HTTP_402, status=402)),
    ("401", Failure(Fault.HTTP_401, status=401)),
    ("404", Failure(Fault.HTTP_404, status=404)),
    ("413", Failure(Fault.HTTP_413, status=413)),
    ("422", Failure(Fault.HTTP_422, status=422)),
    ("400", Failure(Fault.HTTP_400, status=400)),
)
"""Errors that may be shown between two cards as conditions for a fallback, each with an example failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """A candidate's card with its findings, and the kinds of content that are lost from this candidate on."""

    card: CandidateDraft
    checked: CheckedCandidate
    badges: list[dict[str, Any]]
    loss: str
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """The conflict between a draft and the version that another user has saved in the meantime."""

    saved: str
    draft: str
    differences: tuple[SideBySideRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorPage:
    """What the editor works on: the stored route, its row, the draft, and the pressed button."""

    state: Snapshot
    row: TaskRoute | None
    base: RouteSpec
    draft: Draft
    action: EditorAction
    data: QueryDict


@require_http_methods(["GET", "POST"])
def route(request: HttpRequest, task_type: str) -> HttpResponse:
    row = find_route_with_chain(task_type)
    if row is None:
        raise Http404
    return edit(request, row, route_spec(row))


@require_http_methods(["GET", "POST"])
def route_new(request: HttpRequest) -> HttpResponse:
    """Show the editor for a new route. `?task_type=` prefills its task type."""
    return edit(request, None, replace(NEW_ROUTE, task_type=request.GET.get("task_type", "")[:200]))


def edit(request: HttpRequest, row: TaskRoute | None, base: RouteSpec) -> HttpResponse:
    state = snapshot.current()
    if request.method == "GET":
        draft = build_draft(base, row.version if row else None)
        return show(
            request,
            EditorPage(state=state, row=row, base=base, draft=draft, action=EditorAction("open"), data=QueryDict()),
        )
    action = read_action(request.POST)
    data = apply_action(request.POST, action, state.configuration)
    if row is not None:
        # The task type of a stored route cannot be changed.
        data["task_type"] = row.task_type
    editor = can_edit(request)  # Viewers' pages have no fields to post, so the stored route is simulated for them.
    draft = read_draft(data) if editor else build_draft(base, row.version if row else None)
    page = EditorPage(state=state, row=row, base=base, draft=draft, action=action, data=data)
    if action.verb == "past":  # The page requests this retrospective separately, once the user has stopped editing.
        return render(request, "routes/past.html", render_retrospective(state, base if row else None, draft.spec(base)))
    return save(request, page) if action.verb == "save" else show(request, page)


def save(request: HttpRequest, page: EditorPage) -> HttpResponse:
    """Save the draft as one revision. If this fails, return 422 with all problems, or 409 with both versions.

    Raise `PermissionDenied` for viewers.
    """
    if not can_edit(request):
        raise PermissionDenied
    if not check_draft(page):
        return show(request, page, status=422)
    spec = page.draft.spec(page.base)
    try:
        change = save_route_as(request_actor(request), page.row, spec, expected=page.draft.version)
    except ConflictError as refusal:
        return show_conflict(request, page, translate_refusal(refusal))
    except ActionError as refusal:
        page.draft.problems.append(translate_refusal(refusal))
        return show(request, page, status=422)
    text = _("Saved %(name)s.") if change.revision else _("%(name)s had no changes.")
    add_toast(request, text % {"name": spec.task_type}, change.revision)
    return redirect("route", spec.task_type)


def check_draft(page: EditorPage) -> bool:
    """Return whether the draft can be saved. If not, add the reasons to the draft."""
    draft = page.draft
    if page.row is None:
        draft.form.fields["task_type"].validators.append(check_new_name)
    is_valid = draft.valid()
    if not draft.cards:
        draft.problems.append(_("A task route needs a candidate. Add one."))
    name = draft.form.cleaned_data.get("task_type", "")
    if page.row is None and name and find_route(name) is not None:
        draft.form.add_error("task_type", _("A task route with this name already exists."))
        is_valid = False
    return is_valid and not draft.problems


def show_conflict(request: HttpRequest, page: EditorPage, sentence: str) -> HttpResponse:
    page.draft.problems.append(sentence)
    current = find_route_with_chain(page.base.task_type)
    if current is None:
        return show(request, page, status=409)
    # The page now shows the other user's version, so saving again may overwrite it.
    page.draft.version = current.version
    base = route_spec(current)
    draft_spec = page.draft.spec(base)
    configuration = page.state.configuration
    conflict = Conflict(
        " → ".join(candidate_name(candidate) for candidate in base.candidates),
        " → ".join(candidate_name(candidate) for candidate in draft_spec.candidates),
        side_by_side(with_route(configuration, base), with_route(configuration, draft_spec)),
    )
    return show(request, replace(page, row=current, base=base), status=409, conflict=conflict)


def show(
    request: HttpRequest, page: EditorPage, *, status: int = 200, conflict: Conflict | None = None
) -> HttpResponse:
    template = "routes/route.html#editor" if request.htmx else "routes/route.html"  # type: ignore[attr-defined]
    panel = simulate_panel(request, page)
    extra: dict[str, Any] = {"conflict": conflict, "panel": panel}
    if request.htmx:  # type: ignore[attr-defined]
        extra["moved"] = words.position_text(page.action, page.draft)
    elif page.row is not None:
        extra["obstacle"] = find_obstacle(check_can_delete_route, page.row, page.row.task_type)
        extra["losses"] = find_deletion_consequences("route", [page.row.task_type])
        extra["endings"] = list_route_endings(page.row.task_type)
    return render(request, template, context(page) | extra, status=status)


def simulate_panel(request: HttpRequest, page: EditorPage) -> Panel:
    """Return the panel beside the chain. After Simulate or Send, it contains the result of running the draft."""
    may_attach = may(request.user, PagePart.ARTIFACT_BYTES)
    panel = read_panel(page.data, page.state.configuration, may_attach=may_attach)
    set_outcomes(panel, page.data, [(card.id, card.name) for card in page.draft.cards])
    if page.action.verb == "simulate":
        run_simulation(panel, page.state, page.draft.spec(page.base))
    elif page.action.verb == "send" and may(request.user, PagePart.REAL_REQUESTS):
        send(request, panel, page.state, page.draft.spec(page.base))
    return panel


def context(page: EditorPage) -> dict[str, Any]:
    draft, state = page.draft, page.state
    if draft.form.is_bound and page.action.verb == "open":
        draft.valid()
    if page.action.verb != "save" and not draft.form["task_type"].value():
        draft.form.errors.pop("task_type", None)  # An empty task type is an error only on saving.
    spec = draft.spec(page.base)
    attention = [
        *list_problems(draft.form),
        *(replace(one, label=f"{card.name}: {one.label}") for card in draft.cards for one in list_problems(card.form)),
    ]
    findings = lint(
        state.configuration,
        spec,
        unusable_providers(state),
        map_drifts(),
        today=timezone.localdate(),
        catalogue=state.catalogue,
    )
    policy = route_policy(spec)
    pick = str(page.data.get("pick", "")).strip()
    changes = route_changes(page.base if page.row else None, spec)
    show_inherited_values(draft, spec)
    return {
        "row": page.row,
        "draft": draft,
        "spec": spec,
        "cards": list(card_views(draft, findings.candidates)),
        "guaranteed": findings.guaranteed,
        "fallback_conditions": fallback_conditions(policy),
        "attention": attention,
        "problems": list_draft_problems(draft, attention) if page.action.verb == "save" else [],
        "has_required": page.row is None,
        "changes": [words.change_text(change) for change in changes],
        "policy": errors.build_policy_rows(spec),
        "own_words": len(draft.on_error),
        "actions": errors.ACTIONS.items(),
        "error_example": errors.EXAMPLE,
        "pasted_text": page.data.get("error", ""),
        "pasted": errors.read_pasted(str(page.data.get("error", "")), spec),
        "pick": pick,
        "pick_problem": find_pick_problem(pick) if page.action.verb == "add" else "",
        "focus": focus_after(page.action, page.data.getlist("card")),
        "unsaved": page.action.verb == "save" or (page.action.verb != "open" and bool(changes or not page.row)),
        "limits": [draft.form[name] for name in NUMBERS],
        **words.describing_context(state.configuration, spec),
    }


def list_draft_problems(draft: Draft, attention: list[FormProblem]) -> list[FormProblem]:
    return [*(FormProblem("", "", problem) for problem in draft.problems), *attention]


def card_views(draft: Draft, checked: tuple[CheckedCandidate, ...]) -> list[CardView]:
    last = len(draft.cards) - 1
    pairs = enumerate(zip(draft.cards, checked, strict=True))
    return [
        CardView(
            card=card,
            checked=candidate,
            badges=words.badges(candidate),
            loss=words.loss_text(candidate.loses),
            first=index == 0,
            last=index == last,
        )
        for index, (card, candidate) in pairs
    ]


def show_inherited_values(draft: Draft, spec: RouteSpec) -> None:
    """Show the values that cards inherit from the route as placeholders in the cards' empty fields."""
    default = pgettext("parameter", "default")
    for name in ("temperature", "max_tokens"):
        value = getattr(spec, name)
        draft.form.fields[name].widget.attrs["placeholder"] = default
        for card in draft.cards:
            card.form.fields[name].widget.attrs["placeholder"] = default if value is None else str(value)


def fallback_conditions(policy: Policy) -> list[str]:
    """Return the errors after which the chain continues with the next candidate."""
    return [word for word, failure in CONDITIONS if policy.verdict(failure).action is not Action.RAISE]


def find_pick_problem(pick: str) -> str:
    """Return why no candidate was added, or an empty string if none was requested."""
    return _("No model service or provider has this name.") if pick else ""
