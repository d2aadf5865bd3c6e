"""Notices for administrators on the dashboard: one for each kind of problem, with a count and a link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from capabilities.core.translatable import insert_facts
from capabilities.quantities import size_text
from routing_admin.console.base.context import find_url
from routing_admin.console.base.form_fields import LIMITS
from routing_admin.console.dashboard.queries import LowBudget, QuotaUse
from routing_admin.console.providers.queries import KeyRefusal
from routing_admin.console.routes.queries import CAUSES, UNABLE, RouteStatus
from routing_admin.console.services.queries import DriftView
from routing_admin.core.alerts.kinds import KINDS, AlertKind, Severity
from routing_admin.core.fallback.cooldown import Cooldowns

MAX_LINES, FEW_LINES = 5, 3
"""Maximum number of lines that a notice lists, and the maximum with which it is expanded at first."""
MAX_CAUSES = 4
PLAIN_LINE = "dashboard/notice_line.html"

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class NoticeLine:
    """An entry with a problem: its name, the URL of its page or an empty string, and a sentence about the problem."""

    name: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that several problems share, the number of these problems, and the URL of a list of them."""

    label: str
    count: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeGroup:
    """All problems of one kind. A single problem is shown as a line; `sentence` sums up several problems.

    `line_template` renders one of `lines`, and `act_template` renders a button that applies to all lines.
    """

    tone: str
    icon: str
    sentence: str
    url: str
    lines: Sequence[Any] = ()
    causes: Sequence[Cause] = ()
    line_template: str = PLAIN_LINE
    act_template: str = ""

    @property
    def are_few(self) -> bool:
        # Lines with buttons take too much space to be shown without a click.
        return 0 < len(self.lines) <= FEW_LINES and self.line_template == PLAIN_LINE

    @property
    def first_lines(self) -> Sequence[NoticeLine]:
        return split_list(self.lines, MAX_LINES)[0]

    @property
    def more(self) -> int:
        return len(split_list(self.lines, MAX_LINES)[1])


def split_list(items: Sequence[Item], most: int) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the first `most` items, and the remaining ones.

    A single remaining item is not split off, because "1 more" would take as much space.
    """
    end = most if len(items) > most + 1 else len(items)
    return items[:end], items[end:]


def list_notices(
    *,
    alerts: Mapping[AlertKind, int],
    standings: Iterable[RouteStatus],
    budgets: Sequence[LowBudget],
    refusals: Sequence[KeyRefusal],
    quotas: Sequence[QuotaUse],
    cooldowns: Cooldowns,
    drifts: Sequence[DriftView],
) -> list[NoticeGroup]:
    """Return one group for each kind of problem that exists, critical kinds first.

    Alerts about budgets and rejected keys are omitted if groups of their own already list these problems.
    """
    grouped = {kind for kind, lines in ((AlertKind.BUDGET, budgets), (AlertKind.KEY_REFUSED, refusals)) if lines}
    groups = (
        _group_routes(standings),
        _group_budgets(budgets),
        _group_cooling(cooldowns),
        _group_refusals(refusals),
        _group_alerts(alerts, grouped),
        _group_quotas(quotas),
        _group_drifts(drifts),
    )
    shown = [group for group in groups if group.lines or group.causes]
    return sorted(shown, key=lambda group: group.tone != "bad")


def _group_alerts(counts: Mapping[AlertKind, int], grouped: Collection[AlertKind]) -> NoticeGroup:
    url, counter = reverse("alerts"), +Counter({kind: count for kind, count in counts.items() if kind not in grouped})
    is_critical = any(KINDS[kind].severity is Severity.CRITICAL for kind in counter)
    if any(counts.get(kind) for kind in grouped):
        sentence = ngettext("%(count)s other alert", "%(count)s other alerts", counter.total())
    else:
        sentence = ngettext("%(count)s active alert", "%(count)s active alerts", counter.total())
    return NoticeGroup(
        tone="bad" if is_critical else "warn",
        icon="stop" if is_critical else "warn",
        sentence=sentence % {"count": counter.total()},
        url=url,
        causes=[
            Cause(_(KINDS[kind].title), number, f"{url}#{kind}") for kind, number in counter.most_common(MAX_CAUSES)
        ],
    )


def _group_routes(standings: Iterable[RouteStatus]) -> NoticeGroup:
    unable = [standing for standing in standings if not standing.ready]
    counts = Counter(standing.cause for standing in unable)
    routes_url = reverse("routes")
    return NoticeGroup(
        tone="bad",
        icon="stop",
        sentence=ngettext("%(count)s task route cannot answer", "%(count)s task routes cannot answer", len(unable))
        % {"count": len(unable)},
        url=f"{routes_url}?{urlencode({'state': UNABLE})}",
        lines=[
            NoticeLine(route.task_type, find_url("route", route.task_type), " ".join(route.reasons)) for route in unable
        ],
        causes=[
            Cause(str(CAUSES[cause]), count, f"{routes_url}?{urlencode({'state': UNABLE, 'cause': cause})}")
            for cause, count in counts.most_common()
        ],
    )


def _group_budgets(budgets: Sequence[LowBudget]) -> NoticeGroup:
    url = reverse("budgets")
    spent = sum(budget.percent >= 100 for budget in budgets)
    return NoticeGroup(
        tone="bad" if spent else "warn",
        icon="warn",
        sentence=_count_budgets(spent, len(budgets) - spent),
        url=url,
        lines=[
            NoticeLine(
                budget.label or budget.agent,
                url if budget.label else find_url("agent", budget.agent),
                insert_facts(
                    _("%(label)s: %(percent)s%% used, resets at %(moment)s."),
                    {
                        "label": LIMITS[budget.meter][0],
                        "percent": budget.percent,
                        "moment": f"{localtime(budget.resets_at):%Y-%m-%d %H:%M}" if budget.resets_at else "–",
                    },
                ),
            )
            for budget in budgets
        ],
    )


def _count_budgets(spent: int, low: int) -> str:
    if spent and low:
        return _("Budgets: %(spent)s used up, %(low)s nearly used up") % {"spent": spent, "low": low}
    if spent:
        return ngettext("%(count)s budget is used up", "%(count)s budgets are used up", spent) % {"count": spent}
    return ngettext("%(count)s budget is nearly used up", "%(count)s budgets are nearly used up", low) % {"count": low}


def _group_cooling(cooldowns: Cooldowns) -> NoticeGroup:
    cooling = sorted(cooldowns.list_cooling(), key=lambda entry: -entry[1].seconds)
    return NoticeGroup(
        tone="warn",
        icon="clock",
        sentence=ngettext("%(count)s model is cooling down", "%(count)s models are cooling down", len(cooling))
        % {"count": len(cooling)},
        url=reverse("providers"),
        lines=[
            NoticeLine(
                f"{provider}/{model}" if model else provider,
                find_url("provider", provider),
                insert_facts(
                    _("is cooling down for %(seconds)s s after %(fault)s."),
                    {"seconds": round(cooldown.seconds), "fault": cooldown.failure.fault.value},
                ),
            )
            for (provider, model), cooldown in cooling
        ],
        act_template="dashboard/try_again.html",
    )


def _group_refusals(refusals: Sequence[KeyRefusal]) -> NoticeGroup:
    return NoticeGroup(
        tone="warn",
        icon="key",
        sentence=ngettext(
            "%(count)s key is refused by its provider", "%(count)s keys are refused by their providers", len(refusals)
        )
        % {"count": len(refusals)},
        url=reverse("providers"),
        lines=[
            NoticeLine(
                refusal.provider,
                find_url("provider", refusal.provider),
                insert_facts(
                    _("refuses its key %(key)s (%(fault)s). Its other keys still work. Replace this one."),
                    {"key": refusal.key, "fault": refusal.fault},
                ),
            )
            for refusal in refusals
        ],
    )


def _group_quotas(quotas: Sequence[QuotaUse]) -> NoticeGroup:
    url = f"{reverse('settings')}#retention"
    return NoticeGroup(
        tone="warn",
        icon="warn",
        sentence=ngettext(
            "%(count)s storage quota is nearly used up", "%(count)s storage quotas are nearly used up", len(quotas)
        )
        % {"count": len(quotas)},
        url=url,
        lines=[
            NoticeLine(
                quota.agent or _("Artifacts"),
                url,
                insert_facts(
                    _("%(used)s of %(quota)s stored. Beyond that, files are refused."),
                    {"used": size_text(quota.used), "quota": size_text(quota.quota)},
                ),
            )
            for quota in quotas
        ],
    )


def _group_drifts(drifts: Sequence[DriftView]) -> NoticeGroup:
    doubts = sum(drift.line.is_doubt for drift in drifts)
    return NoticeGroup(
        tone="warn" if doubts else "info",
        icon="warn" if doubts else "info",
        sentence=ngettext(
            "%(count)s model does not read what it is declared to read",
            "%(count)s models do not read what they are declared to read",
            doubts,
        )
        % {"count": doubts}
        if doubts
        else ngettext("%(count)s model reads more", "%(count)s models read more", len(drifts)) % {"count": len(drifts)},
        url=reverse("matrix"),
        lines=drifts,
        line_template="capabilities/drift_line.html",
    )
