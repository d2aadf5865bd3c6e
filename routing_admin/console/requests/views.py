"""Pages of the request log: the list with its search, and a single request with the provider's response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from artifacts.library.queries import find_artifacts
from artifacts.storage.thumbnails import can_have_thumbnail
from capabilities.access import may, request_actor
from capabilities.core.permissions import PagePart
from capabilities.core.prices import money_texts
from capabilities.labels import KINDS
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.console.base.lists import page_size
from routing_admin.console.base.readings import record_body_read
from routing_admin.console.base.session import find_return_url
from routing_admin.console.base.spreadsheets import csv_response
from routing_admin.console.base.tags.charting import table_rows
from routing_admin.console.requests.advice import RenderedAdvice, advise
from routing_admin.console.requests.filters import (
    NAME_KEYS,
    build_form,
    describe_totals,
    list_address,
    list_chips,
    list_names,
    read_form,
    suggest_words,
)
from routing_admin.console.requests.listing import (
    COLUMNS,
    COLUMNS_COOKIE,
    USUAL,
    build_rows,
    chosen_columns,
    order_columns,
)
from routing_admin.console.requests.prefix_story import explain_prefix
from routing_admin.console.requests.story import (
    Step,
    add_entries,
    build_steps,
    build_story,
    build_tracks,
    color_chips,
)
from routing_admin.console.requests.volume import LATENCIES, draw_latencies, draw_volume
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.errors import ALL_FAILED
from routing_admin.core.fallback.remedies import Remedy
from routing_admin.limits.prices.sheet import sheet_of
from routing_admin.models import RequestLog
from routing_admin.request_log.costs import sum_waste
from routing_admin.request_log.entries import TOKEN_DETAILS
from routing_admin.request_log.latencies import Latency
from routing_admin.request_log.operations import operation_name
from routing_admin.request_log.search import (
    MAX_NEW,
    MAX_SUGGESTIONS,
    count_newer,
    find,
    find_earlier_request,
    find_logged_request,
    find_logged_requests,
    match_names,
    write_cursor,
    write_position,
)
from routing_admin.request_log.search_words import KEYS, Search, parse
from routing_admin.request_log.sentences import RenderedSentence, render_logged
from routing_admin.request_log.totals import sum_matches

if TYPE_CHECKING:
    from artifacts.models import Artifact
    from routing_admin.models import RequestLog


# The open list polls for the number of newer requests, and the search box asks for suggestions.

NO_CONTENT = 204
MAX_QUERY_CHARS = 300
"""How many characters at the start of the search text are read to suggest completions."""


@require_GET
def requests_newer(request: HttpRequest) -> HttpResponse:
    """Return the number of matching requests that are newer than the first one shown.

    The status is 204 if the page already shows this number.
    """
    typed, after, shown_count = (request.GET.get(name, "") for name in ("q", "after", "count"))
    count = count_newer(parse(typed), after)
    if str(count) == shown_count:
        return HttpResponse(status=NO_CONTENT)
    context = {"count": count, "is_more": count == MAX_NEW, "typed": typed, "place": after}
    return render(request, "requests/newer.html", context)


@require_GET
def requests_words(request: HttpRequest) -> HttpResponse:
    """Return suggestions for the search text `q`, or for the value of one field of the filter form."""
    key = next((name for name in NAME_KEYS if name in request.GET), "")
    if key:
        words = match_names(request.GET[key][:MAX_QUERY_CHARS], list_names(key))[:MAX_SUGGESTIONS]
    else:
        words = suggest_words(request.GET.get("q", "")[:MAX_QUERY_CHARS])
    return render(request, "requests/words.html", {"words": words})


SECTION, STRIP = "over-time", "over-time-strip"
"""HTML ids of the collapsible chart on the page of an agent, route, provider or service, and of its collapsed line."""
RANGES = (("1d", gettext_lazy("24 hours")), ("7d", gettext_lazy("7 days")), ("30d", gettext_lazy("30 days")))


CHARTS: Mapping[str, str | Promise] = {
    "": gettext_lazy("Requests"),
    **{latency.value: label for latency, label in LATENCIES.items()},
}
"""Charts that the page can show for a search, by value of the parameter `show`."""


@require_GET
def requests_volume(request: HttpRequest) -> HttpResponse:
    """Show the chart for a search, as a separate page or as a fragment that another page loads later."""
    now = timezone.now()
    typed = request.GET.get("q", "")
    search = parse(typed, now)
    if request.headers.get("HX-Target") == STRIP:
        return render(request, "requests/over_time_strip.html", _summarize(search, now))
    show = request.GET.get("show", "")
    chart = draw_latencies(search, Latency(show), now) if show in set(Latency) else draw_volume(search, now)
    if request.GET.get("format") == "csv" and chart is not None:
        return csv_response("requests-over-time.csv", table_rows(chart))
    context: dict[str, Any] = {"volume": chart, "typed": typed, "show": show, "charts": CHARTS}
    if request.headers.get("HX-Target") == SECTION:
        context["totals"] = describe_totals(sum_matches(search, now), search)
        context["ranges"] = [
            (label, search.having("since", since).to_text(), since == search.get("since")) for since, label in RANGES
        ]
        return render(request, "requests/over_time_chart.html", context)
    return render(request, _chart_template(request), context)


def _summarize(search: Search, now: datetime) -> dict[str, Any]:
    chart = draw_volume(search, now)
    heights = [sum(values) for values in zip(*(one.values for one in chart.series), strict=True)] if chart else []
    return {
        "totals": describe_totals(sum_matches(search, now), search),
        "range_name": dict(RANGES).get(search.get("since"), ""),
        # Omit the last bucket: it is incomplete, so it would look like a drop.
        "heights": heights[:-1],
        "label": chart.label if chart else "",
    }


def _chart_template(request: HttpRequest) -> str:
    if request.headers.get("HX-Request") != "true":
        return "requests/volume_page.html"
    is_switched = request.headers.get("HX-Target") == "volume"
    return "requests/volume_chart.html#chart" if is_switched else "requests/volume_chart.html"


FORM = "form"
"""Query parameter that marks a submitted filter form. The form's fields become terms of the search text."""
LIVE_COOKIE = "request_live"
EXAMPLE = "status:failed task:planning provider:openai since:1h"
"""Placeholder of the search box. The keys of search terms are never translated."""


@require_GET
def requests(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    search = parse(request.GET.get("q", ""), now)
    if FORM in request.GET:
        return redirect(reverse("requests") + list_address(read_form(search, request.GET)))
    size = page_size(request)
    page = find(search, request.GET.get("before", ""), request.GET.get("after", ""), size=size)
    typed = request.GET.get("q", "")
    shown = chosen_columns(request.COOKIES.get(COLUMNS_COOKIE))
    context = {
        "rows": build_rows(page.rows, search, shown, now),
        "size": size,
        "columns": COLUMNS,
        "shown": shown,
        "is_usual": shown == USUAL,
        "search": search,
        "typed": typed,
        "totals": describe_totals(sum_matches(search, now), search) if page.rows else None,
        "chips": list_chips(search),
        "form": build_form(search, now),
        "older": list_address(search, before=page.older) if page.older else "",
        "newer": list_address(search, after=page.newer) if page.newer else "",
        "keys": KEYS,
        "words": suggest_words(typed[:MAX_QUERY_CHARS]),
        "is_live": (is_live := request.GET.get("live", request.COOKIES.get(LIVE_COOKIE)) != "off"),
        "live_url": list_address(search, live="off" if is_live else "on"),
        # Only the first page, with the newest requests, polls for new ones. If it is empty, all later requests are new.
        "place": "" if page.newer else write_cursor(page.rows[0]) if page.rows else write_position(timezone.now(), "~"),
        "example": EXAMPLE,
    }
    response = render(request, "requests/requests.html", context)
    if "live" in request.GET:
        # The cookie lasts until the browser is closed. Links to filters and pages therefore need not repeat the choice.
        word, secure = "on" if is_live else "off", settings.SESSION_COOKIE_SECURE
        response.set_cookie(LIVE_COOKIE, word, samesite="Lax", secure=secure, httponly=True)
    return response


@require_POST
def requests_columns(request: HttpRequest) -> HttpResponse:
    """Store the list's visible columns in a cookie. If none is chosen, restore the default columns."""
    response = redirect(find_return_url(request))
    names = order_columns(request.POST.getlist("column"))
    if not names or names == USUAL:
        response.delete_cookie(COLUMNS_COOKIE, samesite="Lax")
        return response
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(
        COLUMNS_COOKIE, ".".join(names), max_age=365 * 86400, samesite="Lax", secure=secure, httponly=True
    )
    return response


@require_GET
def request_detail(request: HttpRequest, pk: str) -> HttpResponse:
    """Show a single request. Raise `Http404` if it is not in the log."""
    logged = find_logged_request(pk, body=may(request.user, PagePart.RECORDED_BODIES))
    if logged is None:
        raise Http404
    row, steps, state = logged.row, build_steps(logged.attempts, logged.row.ending), snapshot.current()
    call_ids = [call.request_id for step in steps for call in step.describer_calls]
    # Calls to models that describe files have log entries of their own, which contain the cost.
    steps = add_entries(steps, find_logged_requests(call_ids)) if call_ids else steps
    record_body_read(request_actor(request), row)
    context = {
        "row": row,
        "story": build_story(row, steps),
        "advice": [] if row.outcome == OK else [(item, _has_page(item, state)) for item in advise(row, steps)],
        "ending": row.ending,
        "caller_error": _caller_error(row, steps),
        "has_errors": any(step.error for step in steps),
        "answer": build_answer(row, find_artifacts(artifact_ids(row))),
        "steps": steps,
        "chain": color_chips(row.chain, row.ending),
        "has_calls": any(not step.is_skipped for step in steps),
        "tracks": build_tracks(steps, row.duration_ms),
        "dropped": sorted({name for step in steps for name in step.row.dropped_params}),
        "prefix": translate_sentence(explain_prefix(row, logged.attempts, find_earlier_request(row)) or ""),
        "has_files": any(step.files for step in steps),
        "contested_price": sheet_of(state).find_contested(row.provider, row.model),
        "wasted": money_texts(sum_waste(row, logged.attempts)),
        "has_tokens": (has_tokens := any(step.row.is_counted or step.describer_calls for step in steps)),
        "has_costs": has_tokens,
        "operation": operation_name(row.surface),
        "is_route": state.configuration.route(row.task_type) is not None,
        "records_bodies": state.record_bodies,
    }
    return render(request, "requests/request.html", context)


def _caller_error(row: RequestLog, steps: Sequence[Step]) -> RenderedSentence | None:
    # The error message that the caller received is shown only if the attempts do not already show it.
    error = render_logged(row)
    is_summary = row.outcome == ALL_FAILED and not (error.quoted or error.earlier)
    is_known = not steps or is_summary or any(step.error == error for step in steps)
    return None if is_known or not error else error


def _has_page(advice: RenderedAdvice, state: snapshot.Snapshot) -> bool:
    look_up = {Remedy.PROVIDER: state.configuration.provider, Remedy.ROUTE: state.configuration.route}
    return advice.page not in look_up or look_up[advice.page](advice.argument) is not None


TOKEN_LABELS: Mapping[str, str | Promise] = {
    "cachedTokens": gettext_lazy("read from the cache"),
    "cacheWriteTokens": gettext_lazy("written to the cache"),
    "cacheWrite5mTokens": gettext_lazy("of these for 5 minutes"),
    "cacheWrite1hTokens": gettext_lazy("of these for an hour"),
    "promptAudioTokens": gettext_lazy("audio input"),
    "promptImageTokens": gettext_lazy("image input"),
    "toolTokens": gettext_lazy("from the provider's own tools"),
    "reasoningTokens": gettext_lazy("thinking"),
    "completionAudioTokens": gettext_lazy("audio output"),
    "completionImageTokens": gettext_lazy("image output"),
    "acceptedPredictionTokens": gettext_lazy("predicted and right"),
    "rejectedPredictionTokens": gettext_lazy("predicted and wrong"),
    "webSearchRequests": gettext_lazy("web searches (calls)"),
    "webFetchRequests": gettext_lazy("web pages fetched (calls)"),
}
"""Names of token categories, in the order of the page."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file that the model generated, and its artifact if it still exists."""

    kind: str
    mime_type: str
    size: int | None
    artifact: Artifact | None
    was_stored: bool
    is_elsewhere: bool

    @property
    def kind_name(self) -> str:
        return str(KINDS.get(self.kind, self.kind))

    @property
    def has_picture(self) -> bool:
        return self.artifact is not None and can_have_thumbnail(self.artifact)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What the page shows beside an answer. Texts are empty if the provider did not report them.

    `replay_of` is the id of the request whose result was replayed, or empty. `choice` says which of the response's
    answers this is.
    """

    finish_reason: str
    stop_reason: str
    explanation: str
    service_tier: str
    fingerprint: str
    tokens: tuple[tuple[int, str | Promise], ...]
    citations: int
    files: tuple[AnswerFile, ...]
    replay_of: str
    choice: Mapping[str, Any]


def artifact_ids(row: RequestLog) -> tuple[str, ...]:
    """Return the ids of the artifacts in which an answer's files are stored."""
    return tuple(file["artifactId"] for file in (row.answer or {}).get("media", ()) if file["artifactId"])


def build_answer(row: RequestLog, artifacts: Mapping[str, Artifact]) -> AnswerView:
    """Return what the log contains about an answer.

    `artifacts` maps the ids that `artifact_ids` returns to those artifacts that still exist.
    """
    answer, counts = row.answer or {}, row.token_details or {}
    details = answer.get("stopDetails") or {}
    # Token categories without tokens are omitted, because most answers have tokens in only a few.
    tokens = tuple((counts[name], TOKEN_LABELS[name]) for name in TOKEN_DETAILS if counts.get(name))
    return AnswerView(
        answer.get("finishReason", ""),
        answer.get("stopReason", ""),
        ": ".join(details[name] for name in ("category", "explanation") if details.get(name)),
        answer.get("serviceTier", ""),
        answer.get("systemFingerprint", ""),
        tokens,
        answer.get("citations", 0),
        tuple(_answer_file(file, artifacts) for file in answer.get("media", ())),
        answer.get("replayOf", ""),
        answer.get("choice", {}),
    )


def _answer_file(file: Mapping[str, Any], artifacts: Mapping[str, Artifact]) -> AnswerFile:
    artifact_id = file["artifactId"]
    facts = (file["kind"], file["mimeType"], file["size"])
    return AnswerFile(*facts, artifacts.get(artifact_id or ""), artifact_id is not None, file["elsewhere"])
