"""Queries for the dashboard: recent failures, low budgets and quotas, and figures for the last day.

The day's counts and the providers' health are in `request_log.health`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q, Sum
from django.utils import timezone
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from artifacts.library import count_used_bytes
from artifacts.models import Artifact
from capabilities.core.services.agent_limits import RATES, Meter, parse_limits
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import agent_holder_id, label_holder_id
from capabilities.last_use import last_uses
from capabilities.models import AgentKey
from capabilities.quantities import duration_text
from routing_admin.configuration.installation import RetentionSettings
from routing_admin.console.demo.day import DEMO
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.chain import OK
from routing_admin.limits.headers import WARN_PERCENT, percentage
from routing_admin.limits.uses import find_uses, window_end
from routing_admin.models import AuditEvent, RequestLog
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log.health import Day, FirstContent
from routing_admin.request_log.search import failed_condition, fell_back_condition
from routing_admin.request_log.search_words import Search, moment_text
from routing_admin.request_log.time_ranges import back_from, window_start, within

MAX_TROUBLED = 8
"""The page shows at most this many of the requests that fell back or failed."""
TWO_PARTS = "SELECT * FROM ({}) AS first_part UNION ALL SELECT * FROM ({}) AS second_part"
"""SQL that combines two queries, so that each can use its own index.

In SQLite, the parts of a UNION may have a LIMIT only within such subqueries.
"""


def list_troubled_requests(now: datetime) -> list[RequestLog]:
    """Return the newest requests from the last day that fell back or failed, without bodies. This takes one query."""
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    rows = rows.filter(started_at__gte=window_start(now)).order_by("-started_at", "-pk")
    parts = [rows.filter(condition)[:MAX_TROUBLED] for condition in (fell_back_condition(), failed_condition())]
    (fell_back, values), (failed, more_values) = (part.query.get_compiler(LOGS).as_sql() for part in parts)
    found = RequestLog.objects.raw(TWO_PARTS.format(fell_back, failed), [*values, *more_values])
    by_id = {row.pk: row for row in found}
    return sorted(by_id.values(), key=lambda row: (row.started_at, row.pk), reverse=True)[:MAX_TROUBLED]


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """The first steps on a new installation, and whether each is done."""

    loaded_demo: bool
    chose_password: bool
    used_key: bool
    uploaded_file: bool
    answered_request: bool


def find_first_steps(user: str) -> FirstSteps:
    """Return which first steps are done.

    The given user must have set a password; any user may have done the other steps. This usually takes two queries.
    """
    password_events = AuditEvent.objects.filter(action__in=("user.password", "user.join"), object_name=user)
    used_keys = Q(last_used_at__isnull=False) | Q(public_id__in=last_uses().list_noted())
    done = (
        AuditEvent.objects.filter(action="demo.load"),
        password_events,
        AgentKey.objects.filter(used_keys),
        # Filter by the empty owner first, because `owner` is indexed.
        Artifact.objects.filter(owner="").exclude(uploaded_by=""),
    )
    # The user's row always exists, so this one query can compute all steps.
    users, columns = get_user_model().objects.filter(username=user), [Exists(rows) for rows in done]
    loaded_demo, chose_password, used_key, uploaded_file = users.values_list(*columns)[0]
    return FirstSteps(
        loaded_demo=loaded_demo,
        chose_password=chose_password,
        used_key=used_key,
        uploaded_file=uploaded_file,
        answered_request=_was_answered(),
    )


def _was_answered() -> bool:
    rows = RequestLog.objects.filter(outcome=OK).exclude(surface=DEMO)
    # Search the newest days first. They usually contain an answered request, so that older days need not be searched.
    return any(within(rows, period, "started_at").exists() for period in back_from(timezone.now()))


@dataclass(frozen=True, slots=True)
class LowBudget:
    """An agent's or a label's budget whose usage is above the warning threshold. It is reset at `resets_at`.

    For a label's budget, such as a team's, `agent` is empty and `label` is the label's name.
    """

    agent: str
    label: str
    meter: Meter
    percent: int
    resets_at: datetime | None


def list_low_budgets(configuration: Configuration) -> list[LowBudget]:
    """Return budgets above the warning threshold, most used first. If there are no budgets, no query is made."""
    limited = [(agent.id, "", agent_holder_id(agent.id), parse_limits(agent.limits)) for agent in configuration.agents]
    for label, limits in configuration.limits_by_label.items():
        kind, _, name = label.partition(":")
        # A limit of kind `user` applies to each end user of an agent, so it has no single count.
        if kind != LabelKind.USER:
            limited.append(("", name, label_holder_id(LabelKind(kind), name), limits))
    holders = [
        (agent, label, holder, bounds.maximums)
        for agent, label, holder, bounds in limited
        if bounds and bounds.maximums
    ]
    if not holders:
        return []
    uses = find_uses(holder for _, _, holder, _ in holders)
    budgets = [
        LowBudget(agent, label, meter, percentage(uses.get((holder, meter), 0), limit), window_end(meter))
        for agent, label, holder, amounts in holders
        for meter, limit in amounts.items()
        if meter not in RATES
    ]
    return sorted((budget for budget in budgets if budget.percent >= WARN_PERCENT), key=lambda budget: -budget.percent)


QUOTA_THRESHOLD = 0.9
"""The dashboard shows a quota if at least this fraction of it is used."""
MAX_AGENTS = 5
"""Maximum number of agents whose low quotas are listed."""


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How many bytes of a storage quota are used: an agent's or, if `agent` is empty, the installation's."""

    agent: str
    used: int
    quota: int


def list_low_quotas(retention: RetentionSettings) -> list[QuotaUse]:
    """Return storage quotas that are at least 90 % used, the installation's first.

    If there are no quotas, no query is made.
    """
    return [*_list_total_quota(retention), *_list_agent_quotas(retention)]


def _list_total_quota(retention: RetentionSettings) -> Iterator[QuotaUse]:
    quota = retention.quota_bytes
    if quota is not None and (used := count_used_bytes()) >= quota * QUOTA_THRESHOLD:
        yield QuotaUse("", used, quota)


def _list_agent_quotas(retention: RetentionSettings) -> Iterator[QuotaUse]:
    quota = retention.agent_quota_bytes
    if quota is None:
        return
    # This sum is an upper bound, because identical files count only once. Only agents with a large sum are counted
    # exactly.
    sums = Artifact.objects.exclude(owner="").order_by().values("owner").annotate(total=Sum("size"))
    for row in sums.filter(total__gte=quota * QUOTA_THRESHOLD).order_by("-total")[:MAX_AGENTS]:
        if (used := count_used_bytes(row["owner"])) >= quota * QUOTA_THRESHOLD:
            yield QuotaUse(row["owner"], used, quota)


NO_VALUE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure on the dashboard as text, with a comparison, an hourly series, and the log search for its requests.

    The series ends with the last complete hour, because the incomplete current hour would look like a drop.
    """

    label: str
    value: str
    count: str
    series: Sequence[float]
    comparison: str = ""
    tone: str = ""
    search: str = ""


def build_figures(today: Day, yesterday: Day, first_content: FirstContent, now: datetime) -> tuple[Figure, ...]:
    """Return the day's requests, fallbacks and failures, compared with the previous day, and time to first content."""
    start = window_start(now)
    since = ("since", moment_text(start))
    return (
        Figure(
            label=_("Requests, 24 h"),
            value=f"{today.total:,}",
            comparison=_("%(before)s the day before") % {"before": f"{yesterday.total:,}"},
            series=today.requests[:-1],
            count=_("since %(time)s") % {"time": f"{localtime(start):%m-%d %H:%M}"},
            search=Search((since,)).to_text(),
        ),
        _share_figure(_("Answered by fallback"), "fell_back", today, yesterday, ("warn", "fallback", since)),
        _share_figure(_("Failed"), "failed", today, yesterday, ("bad", "failed", since)),
        Figure(
            label=_("First content, median"),
            value=NO_VALUE if first_content.p50 is None else duration_text(first_content.p50),
            count=_("no streamed answer")
            if first_content.p95 is None
            else _("95%% within %(time)s") % {"time": duration_text(first_content.p95)},
            series=first_content.series[:-1],
        ),
    )


def _share_figure(
    label: str, part: str, today: Day, yesterday: Day, search_terms: tuple[str, str, tuple[str, str]]
) -> Figure:
    hours, before = getattr(today, part), yesterday.share(getattr(yesterday, part))
    comparison = _("%(before)s the day before") % {"before": percent_text(before)}
    comparison = _("no request the day before") if before is None else comparison
    tone, status, since = search_terms
    count = ngettext("%(count)s request", "%(count)s requests", sum(hours)) % {"count": f"{sum(hours):,}"}
    search = Search((("status", status), since)).to_text()
    return Figure(
        label=label,
        value=percent_text(today.share(hours)),
        comparison=comparison,
        series=hours[:-1],
        tone=tone if any(hours) else "",
        count=count,
        search=search,
    )


def percent_text(share: float | None) -> str:
    """Return a percentage as `4.3%`, `<0.1%` or `0%`, and None as a dash."""
    if share is None:
        return NO_VALUE
    if share == 0:
        return "0%"
    return "<0.1%" if share < 0.05 else f"{share:.1f}%"
