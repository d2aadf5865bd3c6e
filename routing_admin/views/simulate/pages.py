"""Simulate, and send for real: a request along a chain, once with scripted outcomes and once through the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from artifacts.queries.library import list_attachable
from artifacts.storage.content import part_of
from capabilities.access import actor_of, may
from capabilities.acts import Act
from capabilities.core.delivery.decision import SHOWN, DeliveryForm
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.permissions import PagePart
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.route_changes import name_of
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, RouteSpec
from routing_admin.core.fallback.chain import OK, Attempt
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.core.planning.model_names import task_name
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.recorded import record_answer_sync, record_plan
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import NOT_REACHED, Simulated, simulate
from routing_admin.queries.requests import LoggedRequest, find_logged_request
from routing_admin.request_log.recorded_bodies import question_of
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.request_log.sentences import render_sentence
from routing_admin.server.request_id import request_id_of
from routing_admin.views.simulate import phrases as words
from routing_admin.views.simulate.phrases import OUTCOMES, StopView

if TYPE_CHECKING:
    from artifacts.models import Artifact
    from routing_admin.models import AttemptLog, RequestLog

LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as the page shows it: one sentence, chips, and every candidate; `answer` is what was really said."""

    sentence: str
    tone: str
    stops: list[StopView]
    real: bool
    code: str = ""
    answer: str = ""
    request_id: str = ""

    @property
    def chips(self) -> list[dict[str, str]]:
        """The candidates reached, as a chain of chips."""
        return [
            {"name": stop.name, "code": stop.code, "tone": stop.tone}
            for stop in self.stops
            if stop.code != str(words.SKIPPED[NOT_REACHED])
        ]


@dataclass(slots=True)
class Panel:
    """The panel's fields and, once asked for, its run."""

    message: str
    language: str
    chosen: list[str]
    stream: bool
    assume_usable: bool
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)
    languages: list[tuple[str, str]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    run_view: RunView | None = None
    problem: str = ""

    @property
    def words(self) -> list[tuple[str, Any]]:
        """The outcomes there are to choose."""
        return list(OUTCOMES.items())

    def script(self) -> Mapping[int, Sequence[str]]:
        """The chosen outcome of each place."""
        return {at: (word,) for at, (_card, _name, word) in enumerate(self.outcomes)}


def panel_in(data: QueryDict, configuration: Configuration, *, may_attach: bool) -> Panel:
    """The panel as the page sent it, with its defaults where it was not."""
    asked = "sim-message" in data
    panel = Panel(
        message=str(data.get("sim-message", "")) if asked else _("What is in this file?"),
        language=str(data.get("sim-language", "")),
        chosen=[str(one) for one in data.getlist("sim-artifact") if one],
        stream="sim-stream" in data,
        assume_usable="sim-usable" in data,
    )
    directives = {**LANGUAGE_DIRECTIVES, **{one.code: one.directive for one in configuration.languages}}
    panel.languages = [(code, f"{code} · {text}") for code, text in directives.items()]
    panel.artifacts = list_attachable(panel.chosen) if may_attach else []
    return panel


def with_outcomes(panel: Panel, data: QueryDict, places: Sequence[tuple[str, str]]) -> Panel:
    """The panel with an outcome for each (card, name) of a chain: what was chosen before, else an answer."""
    chosen = [(card, name, str(data.get(f"out-{card}", "200"))) for card, name in places]
    panel.outcomes = [(card, name, word if word in SCRIPTED else "200") for card, name, word in chosen]
    return panel


def chat_of(panel: Panel) -> ChatRequest:
    """The request: the message, and the artifacts that are attached. Raises `Http404` for one that never was."""
    rows = {row.pk: row for row in panel.artifacts}
    parts: list[FilePart] = []
    for pk in panel.chosen:
        if pk not in rows:
            raise Http404
        parts.append(part_of(rows[pk]))
    return ChatRequest((Message(Role.USER, (TextPart(panel.message[:LONGEST]), *parts)),))


def run(panel: Panel, state: Snapshot, route: RouteSpec) -> None:
    """Simulates the run on that route, stored or a draft; the result stands in the panel."""
    if not route.candidates:
        panel.problem = _("There is no candidate to ask yet.")
        return
    found = simulate(
        state,
        route,
        chat_of(panel),
        panel.script(),
        language=panel.language or None,
        stream=panel.stream or "cut" in {word for _card, _name, word in panel.outcomes},
        assume_usable=panel.assume_usable,
    )
    panel.run_view = run_view(found)


def run_view(found: Simulated) -> RunView:
    """A simulated run as the page shows it."""
    last = max((at for at, stop in enumerate(found.stops) if stop.attempt), default=-1)
    stops = [
        stop_view(
            at, stop.candidate.name, stop.outcome, stop.attempt, stop.deliveries, found.planned.chat, last=at == last
        )
        for at, stop in enumerate(found.stops)
    ]
    full = [
        _with_payload(view, stop.payload, stop.wire, stop.bytes, stop.reason)
        for view, stop in zip(stops, found.stops, strict=True)
    ]
    return RunView(sentence(found), "ok" if found.ok else "bad", full, False, f"{found.status} {found.code}")


def sentence(found: Simulated) -> str:
    """Who answers, or what the caller gets instead."""
    if found.answered_by is None:
        return _("Nobody answers: the caller gets %(status)s %(code)s") % {"status": found.status, "code": found.code}
    named = {"place": found.answered_by.index + 1, "name": found.answered_by.name}
    if not found.ok:
        return _("Candidate %(place)s, %(name)s, is cut off: the caller keeps what came") % named
    return _("Candidate %(place)s, %(name)s, answers") % named


def stop_view(
    at: int,
    name: str,
    outcome: str,
    attempt: Attempt | None,
    deliveries: Sequence[Any],
    chat: ChatRequest,
    *,
    last: bool,
) -> StopView:
    """One candidate without its payload."""
    tone, icon = words.tone_of(outcome, last=last)
    described = any(SHOWN[one.delivery.outcome] is DeliveryForm.DESCRIBED for one in deliveries)
    return StopView(
        place=at + 1,
        name=name,
        tone=tone,
        icon=icon,
        code=words.code_of(outcome, attempt),
        said=words.details(outcome, attempt, deliveries),
        reason=render_sentence(attempt.error if attempt and outcome != OK else ""),
        received=words.received_text(chat, deliveries),
        described=described,
        payload=None,
        wire="",
        bytes=0,
        open=last,
    )


def _with_payload(view: StopView, payload: Any, wire: str, size: int, reason: str) -> StopView:
    return replace(view, payload=payload, wire=wire, bytes=size, reason=view.reason or render_sentence(reason))


def send(request: HttpRequest, panel: Panel, state: Snapshot, route: RouteSpec) -> None:
    """Sends for real, with the person as actor: it is in the request log and the audit log, and may cost money."""
    if not route.candidates:
        panel.problem = _("There is no candidate to ask yet.")
        return
    planned = plan_request(state, route, chat_of(panel), language=panel.language or None)
    dispatch = Dispatch(planned)
    recorder = RequestRecorder(request_id_of(request), "page")
    recorder.add_facts(asked_model=task_name(route.task_type))
    record_plan(recorder, planned, route.task_type)
    with ledger.audit(actor_of(request), Act("request.send", "route", route.task_type)):
        pass
    try:
        done = record_answer_sync(dispatch, recorder)
    except RouterError as error:
        said = _("Nobody answers: the caller gets %(status)s %(code)s") % {"status": error.status, "code": error.code}
        panel.run_view = _sent_view(request, said, "bad", error.attempts, dispatch, str(render_sentence(error.message)))
        return
    named = {"place": done.candidate.index + 1, "name": done.candidate.name}
    said = _("Candidate %(place)s, %(name)s, answered") % named
    panel.run_view = _sent_view(request, said, "ok", done.attempts, dispatch, done.answer.text)


def _sent_view(
    request: HttpRequest, said: str, tone: str, attempts: Sequence[Attempt], dispatch: Dispatch, answer: str
) -> RunView:
    """What really happened, in the same shape as a simulation."""
    stops = []
    for at, attempt in enumerate(attempts):
        name = f"{attempt.provider}/{attempt.model}"
        prepared = dispatch.prepared.get(at)
        deliveries = prepared.deliveries if prepared else ()
        view = stop_view(
            at, name, attempt.outcome, attempt, deliveries, dispatch.planned.chat, last=at == len(attempts) - 1
        )
        if prepared:
            size = prepared.request.content_length
            view = _with_payload(view, prepared.request.elided(), "", size, "")
        stops.append(view)
    return RunView(said, tone, stops, True, answer=answer, request_id=request_id_of(request))


# The page of its own: any stored route, or a request of the log again.


@require_http_methods(["GET", "POST"])
def simulate_page(request: HttpRequest) -> HttpResponse:
    """Simulate on any stored route; `?request=` repeats what became of a request of the log."""
    state = snapshot.current()
    data = request.POST if request.method == "POST" else request.GET
    may_read = may(request.user, PagePart.RECORDED_BODIES)
    found = find_logged_request(data["request"], body=may_read) if data.get("request") else None
    logged = found.row if found else None
    asked = data.get("task") or (logged.task_type if logged else "") or DEFAULT_ROUTE
    route = state.configuration.route(asked) or state.configuration.route(DEFAULT_ROUTE)
    panel = panel_in(data, state.configuration, may_attach=may(request.user, PagePart.ARTIFACT_BYTES))
    if route is not None:
        places = [(str(at), name_of(spec)) for at, spec in enumerate(route.candidates, start=1)]
        with_outcomes(panel, replay_outcomes(data, found, route), places)
        if logged and "sim-message" not in data:
            panel.language = logged.language
            if may_read:
                ask_again(panel, logged)
        if data.get("act") == "send" and request.method == "POST" and may(request.user, PagePart.REAL_REQUESTS):
            send(request, panel, state, route)
        elif data.get("act") == "simulate" or logged:
            run(panel, state, route)
    context = {"panel": panel, "route": route, "routes": state.configuration.routes, "logged": logged}
    return render(request, "routes/simulate_page.html", context)


def ask_again(panel: Panel, logged: RequestLog) -> None:
    """Puts a recorded request's question and its artifacts into the panel; without a record nothing."""
    question, files = question_of(logged.body)
    if not (question or files):
        return
    panel.artifacts = list_attachable(files)
    panel.message, panel.chosen = question, [row.pk for row in panel.artifacts if row.pk in files]


def replay_outcomes(data: QueryDict, logged: LoggedRequest | None, route: RouteSpec) -> QueryDict:
    """The page's data with the outcomes of a logged request, where the page has not chosen others."""
    found = data.copy()
    if logged is None:
        return found
    attempts = {(one.provider, one.model): one for one in logged.attempts}
    configuration = snapshot.current().configuration
    for at, spec in enumerate(route.candidates, start=1):
        provider = configuration.provider(spec.provider)
        one = attempts.get((spec.provider, spec.model or (provider.default_model if provider else "")))
        if one is not None and f"out-{at}" not in found:
            found[f"out-{at}"] = word_of(one)
    return found


def word_of(one: AttemptLog) -> str:
    """The scripted outcome nearest to what became of an attempt: by its fault, else by its status, else an answer."""
    by_fault = {word.failure.fault.value: key for key, word in reversed(list(SCRIPTED.items())) if word.failure}
    if one.outcome in by_fault:
        return by_fault[one.outcome]
    if one.status is not None and str(one.status) in SCRIPTED:
        return str(one.status)
    return "200" if one.outcome == OK or one.outcome in words.SKIPPED else "503"
