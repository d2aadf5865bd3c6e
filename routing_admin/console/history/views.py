"""Pages of the configuration history: list, compare and restore revisions, and show their effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from capabilities.access import can_edit, request_actor, role_for
from capabilities.core.permissions import changeable_kinds
from capabilities.errors import ActionError, NotFoundError
from capabilities.quantities import duration_text
from capabilities.sentences import translate_refusal
from routing_admin.configuration.history import configuration_at, newest_configuration, newest_number
from routing_admin.console.base.consequences import find_restore_consequences
from routing_admin.console.base.keyset import PageCursor
from routing_admin.console.base.lists import page_size
from routing_admin.console.base.page_responses import add_refusal_toast, add_toast
from routing_admin.console.base.session import find_return_url
from routing_admin.console.history import phrases as words
from routing_admin.console.history.actions import restore as act_restore
from routing_admin.console.history.actions import undo as act_undo
from routing_admin.console.history.queries import (
    find_barrier,
    find_effect,
    find_revision,
    find_revision_row,
    list_newest_numbers,
    list_revisions,
)
from routing_admin.core.configuration.diff import diff
from routing_admin.core.configuration.removals import keep_agents
from routing_admin.core.planning.effect import EffectLine, EffectMeasure, EffectTrend, RevisionEffect

if TYPE_CHECKING:
    from routing_admin.models import Revision

SHORT = 3
CAPABILITIES_MESSAGE = "service.capabilities"
ROUTED = ("route", "provider", "service")
"""Kinds of configuration entries that can affect how requests are routed."""
MAX_DIGITS = 18
"""Numbers with up to this many digits fit into a 64-bit column."""
GROUP_WINDOW = timedelta(minutes=5)
"""Consecutive matrix edits by one user are shown as one line if the last was made within this time after the first."""

ICONS: Mapping[str, str] = {
    "person": "user",
    "agent": "agent",
    "token": "key",
    "link": "link",
    "command": "tool",
    "system": "gear",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionLine:
    """A line in the list of revisions: a revision or a group of matrix edits, with its first changes.

    `more` is the number of changes that are not shown.
    """

    revision: Revision
    icon: str
    message: Any
    changes: list[words.ChangeLine]
    more: int
    earlier: tuple[Revision, ...] = ()

    @property
    def may_have_effect(self) -> bool:
        """Return whether the revision can change how requests are routed. This is always false for a group of edits."""
        return not self.earlier and any(change["kind"] in ROUTED for change in self.revision.changes)

    @property
    def first(self) -> int:
        return self.earlier[-1].number if self.earlier else self.revision.number

    @property
    def count(self) -> int:
        return 1 + len(self.earlier)


def read_number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def read_cursor(request: HttpRequest) -> PageCursor:
    return PageCursor(read_number(request, "before"), read_number(request, "after"))


@require_GET
def history(request: HttpRequest) -> HttpResponse:
    size = page_size(request)
    q = request.GET.get("q", "").strip()
    page = list_revisions(read_cursor(request), size, q)
    terms = {"q": q} if q else {}
    context = {
        "q": q,
        "count": len(page.rows),
        "size": size,
        "lines": [revision_line(*group) for group in group_edits(page.rows)],
        "newest": newest_number(),
        "restorable_from": find_oldest_restorable(request),
        "older": f"?{urlencode({**terms, 'before': page.rows[-1].number})}" if page.has_older and page.rows else "",
        "newer": f"?{urlencode({**terms, 'after': page.rows[0].number})}" if page.has_newer and page.rows else "",
    }
    return render(request, "history/history.html", context)


def find_oldest_restorable(request: HttpRequest) -> int:
    """Return the number of the oldest revision that the user may restore, or 0 if the user may restore all."""
    return find_barrier(changeable_kinds(role_for(request.user))) if can_edit(request) else 0


def group_edits(page: Iterable[Revision]) -> list[list[Revision]]:
    """Group a user's consecutive matrix edits within `GROUP_WINDOW`. The newest edit is the first in each group."""
    groups: list[list[Revision]] = []
    for edit in page:
        if groups and _is_same_edit(groups[-1][0], edit):
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups


def _is_same_edit(newest: Revision, edit: Revision) -> bool:
    is_same_source = (newest.message, newest.actor_kind, newest.actor) == (
        CAPABILITIES_MESSAGE,
        edit.actor_kind,
        edit.actor,
    )
    return (
        is_same_source and edit.message == CAPABILITIES_MESSAGE and newest.created_at - edit.created_at <= GROUP_WINDOW
    )


def revision_line(revision: Revision, *earlier: Revision) -> RevisionLine:
    stored = [change for edit in (revision, *earlier) for change in edit.changes]
    changes = words.change_lines(words.stored_changes(stored[:SHORT]))
    icon, message = ICONS.get(revision.actor_kind, "user"), words.action_label(revision.message)
    return RevisionLine(
        revision=revision,
        icon=icon,
        message=message,
        changes=changes,
        more=max(0, len(stored) - SHORT),
        earlier=earlier,
    )


@require_GET
def revision(request: HttpRequest, number: int) -> HttpResponse:
    """Show a revision: its changes as sentences, a diff, and its effect. Raise `Http404` for an unknown revision."""
    placed = find_revision(number)
    if placed is None:
        raise Http404
    row, old, new = placed.row, configuration_at(placed.before), configuration_at(number)
    effect = find_effect(row, old, new, timezone.now())
    effect_context = {"revision": row, "effect": effect, "effects": effect_rows(effect.effect) if effect else []}
    if "effect" in request.GET:  # A line in the list of revisions requests the effect when it is scrolled into view.
        return render(request, "history/effect.html#line", effect_context)
    context = {
        **effect_context,
        "length": length_text(effect.length) if effect else "",
        "icon": ICONS.get(row.actor_kind, "user"),
        "message": words.action_label(row.message),
        "changes": words.change_lines(words.stored_changes(row.changes)),
        **words.compare_texts(old, new),
        "before": placed.before,
        "after": placed.after,
        "newest": placed.newest,
        "restorable_from": find_oldest_restorable(request),
    }
    return render(request, "history/revision.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of two revisions to compare, as typed by the user. `number` is None if this revision does not exist.

    Revision 0 is the empty configuration before the first revision; it is not stored.
    """

    text: str
    number: int | None
    revision: Revision | None = None

    @property
    def message(self) -> Any:
        return words.action_label(self.revision.message) if self.revision else ""


def find_side(request: HttpRequest, name: str, default: int) -> ComparedSide:
    text = request.GET.get(name, "").strip()
    number = read_number(request, name) if text else default
    if not number:
        return ComparedSide(text=text or "0", number=number)
    row = find_revision_row(number)
    return ComparedSide(text=text or str(number), number=row.number if row else None, revision=row)


@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Compare revisions `a` and `b`, by default the two newest.

    If a revision does not exist, its field shows an error.
    """
    newest = [*list_newest_numbers(2), 0, 0]
    left, right = find_side(request, "a", newest[1]), find_side(request, "b", newest[0])
    context: dict[str, Any] = {"left": left, "right": right}
    if left.number is None or right.number is None:
        return render(request, "history/compare.html", context, status=422)
    old, new = configuration_at(left.number), configuration_at(right.number)
    context |= {"changes": words.change_lines(diff(old, new)), **words.compare_texts(old, new), "is_compared": True}
    return render(request, "history/compare.html", context)


@require_http_methods(["GET", "POST"])
def restore(request: HttpRequest, number: int) -> HttpResponse:
    """Show what restoring a revision would change, or restore it. Raise `Http404` for an unknown number."""
    try:
        if "seen" not in request.POST:
            return restore_preview(request, number)
        change = act_restore(request_actor(request), number, kinds=changeable_kinds(role_for(request.user)))
    except NotFoundError as refusal:
        raise Http404 from refusal
    except ActionError as refusal:
        messages.error(request, translate_refusal(refusal))
        return redirect("revision", number)
    if change.revision is None:
        messages.info(
            request,
            _("Nothing to restore: the configuration already matches revision %(number)s.") % {"number": number},
        )
        return redirect("revision", number)
    add_toast(request, _("Restored revision %(number)s.") % {"number": number}, change.revision)
    return redirect("history")


def restore_preview(request: HttpRequest, number: int) -> HttpResponse:
    """Show the changes that restoring would make, and the consequences."""
    restored, current = configuration_at(number), newest_configuration()
    planned = keep_agents(restored, current)
    context = {
        "number": number,
        "changes": words.change_lines(diff(current, planned)),
        **words.compare_texts(current, planned),
        "restoring": find_restore_consequences(restored),
        "may_restore": can_edit(request) and number >= find_oldest_restorable(request),
    }
    return render(request, "history/restore.html", context)


@require_POST
def undo(request: HttpRequest, number: int) -> HttpResponse:
    """Undo the change that created a revision, and return to the page where it was made.

    A toast names the change and offers to redo it.
    """
    is_redo = "redo" in request.POST
    placed = find_revision(number)
    try:
        change = act_undo(request_actor(request), number, kinds=changeable_kinds(role_for(request.user)))
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        # A redo undoes the undo, so the toast says only "Redone". Naming the change would repeat what the previous
        # toast said.
        what = describe_undone(placed.row) if placed and not is_redo else ""
        text = _("Redone.") if is_redo else _("Undone: %(what)s") % {"what": what}
        add_toast(request, text, change.revision, can_redo=not is_redo)
    return redirect(find_return_url(request))


def describe_undone(row: Revision) -> str:
    """Return the revision's change as a sentence or, if there are several, the revision's action and their number."""
    if len(row.changes) == 1:
        return words.change_lines(words.stored_changes(row.changes))[0].sentence
    text = ngettext("%(act)s (%(count)s change)", "%(act)s (%(count)s changes)", len(row.changes))
    return text % {"act": words.action_label(row.message), "count": len(row.changes)}


LABELS: Mapping[EffectMeasure, str | Promise] = {
    EffectMeasure.FAILURES: gettext_lazy("failed"),
    EffectMeasure.FALLBACKS: gettext_lazy("answered by fallback"),
    EffectMeasure.DURATION: gettext_lazy("median duration"),
}
TRENDS: Mapping[EffectTrend, tuple[str, str, str | Promise]] = {
    EffectTrend.WORSE: ("warn", "warn", gettext_lazy("worse")),
    EffectTrend.BETTER: ("ok", "check", gettext_lazy("better")),
    EffectTrend.SAME: ("", "info", gettext_lazy("no clear difference")),
}
"""Maps each trend to a tone, an icon and a label."""
SHARE_CLASSES: Mapping[EffectMeasure, str] = {EffectMeasure.FAILURES: "refused", EffectMeasure.FALLBACKS: "described"}
"""CSS classes of the bar segments that show the shares of failed requests and of fallbacks."""


@dataclass(frozen=True, slots=True)
class EffectSide:
    """A measure before or after a revision: as text, and as bar segments in thousandths. A duration has no bar."""

    text: str
    bar: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A measure of requests, compared before and after a revision."""

    label: str | Promise
    before: EffectSide
    after: EffectSide
    tone: str
    icon: str
    trend: str | Promise

    @property
    def sides(self) -> tuple[EffectSide, EffectSide]:
        return self.before, self.after


def length_text(length: timedelta) -> str:
    """Return the length of the compared time in hours, or in minutes if it is shorter than two hours."""
    minutes = max(1, int(length / timedelta(minutes=1)))
    if minutes < 120:
        return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes}
    return ngettext("%(count)s hour", "%(count)s hours", minutes // 60) % {"count": minutes // 60}


def effect_rows(effect: RevisionEffect) -> list[EffectRow]:
    """Return one row per measure, or none if there are too few requests for a comparison."""
    return [
        EffectRow(LABELS[line.measure], _side(line, line.before), _side(line, line.after), *TRENDS[line.trend])
        for line in effect.lines
    ]


def _side(line: EffectLine, value: float | None) -> EffectSide:
    if value is None:
        return EffectSide("–", {})
    if line.measure is EffectMeasure.DURATION:
        return EffectSide(duration_text(value), {})
    return EffectSide(
        _percent(value), {"native": round(1000 * (1 - value)), SHARE_CLASSES[line.measure]: round(1000 * value)}
    )


def _percent(share: float) -> str:
    # Percentages below 10 are shown with one decimal place, so that 0.4 % is not shown as 0 %.
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"
