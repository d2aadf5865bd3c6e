"""Filters of the request list: chips and a form, which both change the terms of the search text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.prices import NO_CURRENCY, money_texts
from capabilities.labels import BADGES
from routing_admin.configuration import snapshot
from routing_admin.console.base.lists import FilterChip
from routing_admin.console.dashboard.queries import percent_text
from routing_admin.console.requests.story import SHOWN_BADGES
from routing_admin.request_log.search import suggest
from routing_admin.request_log.search_words import ANY_FILE, FILES, Search, moment
from routing_admin.request_log.totals import Totals
from routing_admin.request_log.usage import Counts

Text = str | Promise

STATES: Mapping[str, str] = {
    "ok": "call_answered",
    "fallback": "call_fallback",
    "failed": "call_failed",
    "refused": "call_refused",
    "cancelled": "call_cancelled",
}
"""Maps each state of a request to its badge."""
TIMES: Mapping[str, Text] = {
    "15m": gettext_lazy("Last 15 minutes"),
    "1h": gettext_lazy("Last hour"),
    "1d": gettext_lazy("Last day"),
    "7d": gettext_lazy("Last 7 days"),
    "30d": gettext_lazy("Last 30 days"),
}
QUICK_TIMES = ("1h", "1d")
"""Time ranges that have their own chips."""
KEY_LABELS: Mapping[str, Text] = {
    "status": gettext_lazy("State"),
    "task": gettext_lazy("Task route"),
    "provider": gettext_lazy("Provider"),
    "model": gettext_lazy("Model"),
    "agent": gettext_lazy("Agent"),
    "key": gettext_lazy("Key"),
    "team": gettext_lazy("Team"),
    "project": gettext_lazy("Project"),
    "user": gettext_lazy("End user"),
    "surface": gettext_lazy("API"),
    "files": gettext_lazy("Form of files"),
    "since": gettext_lazy("Since"),
    "until": gettext_lazy("Until"),
}
NAME_KEYS = ("agent", "task", "model", "provider")
"""Keys of search terms that contain a name in this installation. The form suggests names for them."""
FORM_LABELS: Mapping[str, Text] = {
    ANY_FILE: gettext_lazy("Any file"),
    **{form: BADGES[badge][2] for form, badge in SHOWN_BADGES.items()},
}


def list_names(key: str) -> Sequence[str]:
    """Return the names in this installation that can be the value of a search term with this key."""
    state = snapshot.current()
    configuration = state.configuration
    match key:
        case "task":
            return [route.task_type for route in configuration.routes]
        case "provider":
            return [provider.name for provider in configuration.providers]
        case "model":
            return list(dict.fromkeys(service.model for service in configuration.services))
        case "agent":
            return [agent.id for agent in state.agents]
        case _:
            return []


def suggest_words(typed: str) -> list[str]:
    """Return suggestions for the typed text, including names in this installation."""
    return suggest(typed, {key: list_names(key) for key in NAME_KEYS})


def list_address(search: Search, **position: str) -> str:
    """Return the query string that opens the list of requests with this search."""
    parameters = {name: value for name, value in {"q": search.to_text(), **position}.items() if value}
    return f"?{urlencode(parameters)}" if parameters else "?"


def list_chips(search: Search) -> list[FilterChip]:
    """Return the chips for states and times, then a chip for each further term of the search."""
    return [*_preset_chips(search), *_other_chips(search)]


def _preset_chips(search: Search) -> Iterator[FilterChip]:
    presets = [("status", word, BADGES[badge][2], BADGES[badge][1]) for word, badge in STATES.items()]
    presets += [("since", word, TIMES[word], "clock") for word in QUICK_TIMES]
    for key, value, label, icon in presets:
        is_on = search.get(key) == value
        changed = search.having(key, "" if is_on else value)
        yield FilterChip(label=label, url=list_address(changed), icon=icon, is_on=is_on)


def _other_chips(search: Search) -> Iterator[FilterChip]:
    for key, value in search.values:
        if (key == "status" and value in STATES) or (key == "since" and value in QUICK_TIMES):
            continue
        label: Text = value
        if key == "files":
            label = FORM_LABELS[value]
        elif key == "since" and value in TIMES:
            label = TIMES[value]
        url = list_address(search.having(key, ""))
        yield FilterChip(label=label, url=url, key=KEY_LABELS[key] if label is value else "", is_on=True)
    if search.text:
        url = list_address(Search(search.values))
        yield FilterChip(label=search.text, url=url, key=gettext_lazy("Id"), is_on=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameField:
    """A form field for a name. While the user types, names are suggested."""

    key: str
    label: Text
    value: str


def build_form(search: Search, now: datetime) -> dict[str, object]:
    """Return the template context of the filter form: its fields, filled in from the search."""
    since, until = (search.get(key) for key in ("since", "until"))
    return {
        "named": [NameField(key=key, label=KEY_LABELS[key], value=search.get(key)) for key in NAME_KEYS],
        "forms": [(form, FORM_LABELS[form], search.get("files") == form) for form in FILES],
        "times": [(word, label, since == word) for word, label in TIMES.items()],
        "from": _local_time(since, now) if since not in TIMES else "",
        "until": _local_time(until, now),
    }


def _local_time(text: str, now: datetime) -> str:
    found = moment(text, now) if text else None
    # `datetime-local` fields use this format. The time is in the installation's time zone.
    return timezone.localtime(found).strftime("%Y-%m-%dT%H:%M") if found else ""


def read_form(search: Search, fields: Mapping[str, str]) -> Search:
    """Return the search as changed by a submitted form. An empty field removes its term."""
    for key in (*NAME_KEYS, "files"):
        search = search.having(key, fields.get(key, "").strip())
    # The form shows a relative time such as 90m as a date. Unless the user changes this date, the term stays as typed.
    if fields.get("until", "") != fields.get("shown-until", ""):
        search = search.having("until", fields.get("until", ""))
    if fields.get("since"):
        return search.having("since", fields["since"])
    is_kept = search.get("since") not in TIMES and fields.get("from", "") == fields.get("shown-from", "")
    return search if is_kept else search.having("since", fields.get("from", ""))


STATUS_MEANINGS: Mapping[str, Text] = {
    "failed": gettext_lazy("Requests that should have been answered, but were not. Refused ones are not among them."),
    "fallback": gettext_lazy("Requests that a later candidate of the chain answered. They count as answered."),
    "refused": gettext_lazy("Requests that were refused for a reason on the caller's side, such as a budget."),
    "cancelled": gettext_lazy("Requests whose caller disconnected before the answer was complete."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsPart:
    """The requests in one state: their number, what the state means, and the URL that lists them."""

    text: str
    meaning: Text
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsLine:
    """The totals of all requests that match a search, as text."""

    count: str
    parts: Sequence[TotalsPart]
    tokens: str
    costs: Sequence[str]
    is_bounded: bool


def describe_totals(totals: Totals, search: Search) -> TotalsLine:
    """Return the totals as text. Totals per state are omitted if the search already selects a state."""
    counts = totals.counts
    number = {"count": f"{counts.requests:,}"}
    if totals.is_more:
        count = _("More than %(count)s requests") % number
    else:
        count = ngettext("%(count)s request", "%(count)s requests", counts.requests) % number
    has_parts = not (totals.is_more or search.get("status"))
    paid = {currency: nanos for currency, nanos in counts.costs.items() if currency != NO_CURRENCY}
    tokens = ""
    if counts.prompt_tokens or counts.completion_tokens:
        tokens = _("Tokens: %(input)s in, %(output)s out") % {
            "input": f"{counts.prompt_tokens:,}",
            "output": f"{counts.completion_tokens:,}",
        }
    return TotalsLine(
        count=count,
        parts=list(_parts(counts, search)) if has_parts else [],
        tokens=tokens if totals.has_spending else "",
        costs=money_texts(paid) if totals.has_spending else [],
        is_bounded=totals.is_more,
    )


def _parts(counts: Counts, search: Search) -> Iterator[TotalsPart]:
    numbers = {
        "failed": (counts.failures, _("%(count)s failed (%(share)s)")),
        "fallback": (counts.fallbacks, _("%(count)s answered by a fallback")),
        "refused": (counts.refused, _("%(count)s refused")),
        "cancelled": (counts.cancelled, _("%(count)s cancelled")),
    }
    for state, (count, text) in numbers.items():
        if count or (state == "failed" and counts.requests):
            share = percent_text(100 * count / counts.requests) if counts.requests else ""
            url = list_address(search.having("status", state))
            yield TotalsPart(
                text=text % {"count": f"{count:,}", "share": share}, meaning=STATUS_MEANINGS[state], url=url
            )
