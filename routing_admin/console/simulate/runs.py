"""Run a request along a chain: either simulated with scripted outcomes, or sent to real models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from capabilities.access import request_actor
from capabilities.actors import AuditedAction
from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.message import ChatRequest
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.simulate import phrases as words
from routing_admin.console.simulate.panel import Panel, RunView, build_chat
from routing_admin.console.simulate.phrases import StopView
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.chain import OK, Attempt
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.planning.model_names import task_name
from routing_admin.dispatch.description_preview import estimate_description
from routing_admin.dispatch.plan import plan_request, record_plan
from routing_admin.dispatch.recorded import record_answer_sync
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import Simulated, simulate
from routing_admin.platform.server.request_id import read_request_id
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.request_log.sentences import render_sentence


def run_simulation(panel: Panel, state: Snapshot, route: RouteSpec) -> None:
    """Simulate a run along a stored route or a draft, and store the result in the panel."""
    if not route.candidates:
        panel.problem = _("There is no candidate to ask yet.")
        return
    chat = build_chat(panel)
    if panel.problem:
        return
    simulated = simulate(
        state,
        route,
        chat,
        panel.script(),
        language=panel.language or None,
        # A response can be cut off only if it is streamed.
        stream=panel.stream or "cut" in {word for _card, _name, word in panel.outcomes},
        assume_usable=panel.assume_usable,
    )
    panel.run_view = build_run_view(simulated)


def build_run_view(simulated: Simulated) -> RunView:
    # Candidates after the last one that was called did not affect the result.
    last = max((index for index, stop in enumerate(simulated.stops) if stop.attempt), default=-1)
    stops = [
        build_stop_view(
            index,
            stop.candidate.name,
            stop.outcome,
            stop.attempt,
            stop.deliveries,
            simulated.planned.chat,
            last=index == last,
        )
        for index, stop in enumerate(simulated.stops)
    ]
    complete = [
        replace(
            _add_payload(view, stop.payload, stop.wire, stop.bytes, stop.reason), prefix=translate_sentence(stop.prefix)
        )
        for view, stop in zip(stops, simulated.stops, strict=True)
    ]
    return RunView(
        sentence=summarize(simulated),
        tone="ok" if simulated.ok else "bad",
        stops=complete,
        real=False,
        code=f"{simulated.status} {simulated.code}",
    )


def summarize(simulated: Simulated) -> str:
    if simulated.answered_by is None:
        return _("No candidate answers: the caller gets %(status)s %(code)s") % {
            "status": simulated.status,
            "code": simulated.code,
        }
    facts = {"place": simulated.answered_by.index + 1, "name": simulated.answered_by.name}
    if not simulated.ok:
        return _("Candidate %(place)s, %(name)s, is cut off: the caller keeps what came") % facts
    return _("Candidate %(place)s, %(name)s, answers") % facts


def build_stop_view(
    index: int,
    name: str,
    outcome: str,
    attempt: Attempt | None,
    deliveries: Sequence[Any],
    chat: ChatRequest,
    *,
    last: bool,
) -> StopView:
    tone, icon = words.outcome_style(outcome, last=last)
    described = any(delivery.delivery.form is DeliveryForm.DESCRIBED for delivery in deliveries)
    return StopView(
        place=index + 1,
        name=name,
        tone=tone,
        icon=icon,
        code=words.outcome_text(outcome, attempt),
        details=words.describe_stop(outcome, attempt, deliveries, partial(estimate_description, snapshot.current())),
        reason=render_sentence(attempt.error if attempt and outcome != OK else ""),
        text=words.render_received(chat, deliveries),
        described=described,
        payload=None,
        wire="",
        bytes=0,
        open=last,
    )


def _add_payload(view: StopView, payload: Any, wire: str, size: int, reason: str) -> StopView:
    return replace(view, payload=payload, wire=wire, bytes=size, reason=view.reason or render_sentence(reason))


def send(request: HttpRequest, panel: Panel, state: Snapshot, route: RouteSpec) -> None:
    """Send the request to real models for the signed-in user. This is logged and audited, and may cost money."""
    if not route.candidates:
        panel.problem = _("There is no candidate to ask yet.")
        return
    # A placeholder has a kind and a size but no content, so it cannot be sent.
    if panel.placeholders:
        panel.problem = _("A placeholder has no content to send. Attach a stored file instead.")
        return
    planned = plan_request(state, route, build_chat(panel), language=panel.language or None)
    dispatch = Dispatch(planned)
    recorder = RequestRecorder(read_request_id(request), "page")
    recorder.add_facts(asked_model=task_name(route.task_type))
    record_plan(recorder, planned, route.task_type)
    # Record the audit event before the call, which may fail or be interrupted.
    with ledger.audit(request_actor(request), AuditedAction("request.send", "route", route.task_type)):
        pass
    try:
        result = record_answer_sync(dispatch, recorder)
    except RouterError as error:
        headline = _("No candidate answers: the caller gets %(status)s %(code)s") % {
            "status": error.status,
            "code": error.code,
        }
        panel.run_view = _build_sent_view(
            request, headline, "bad", error.attempts, dispatch, str(render_sentence(error.message))
        )
        return
    facts = {"place": result.candidate.index + 1, "name": result.candidate.name}
    headline = _("Candidate %(place)s, %(name)s, answered") % facts
    panel.run_view = _build_sent_view(request, headline, "ok", result.attempts, dispatch, result.answer.text)


def _build_sent_view(
    request: HttpRequest, headline: str, tone: str, attempts: Sequence[Attempt], dispatch: Dispatch, answer: str
) -> RunView:
    stops = []
    for index, attempt in enumerate(attempts):
        name = f"{attempt.provider}/{attempt.model}"
        prepared = dispatch.prepared.get(index)
        deliveries = prepared.deliveries if prepared else ()
        view = build_stop_view(
            index, name, attempt.outcome, attempt, deliveries, dispatch.planned.chat, last=index == len(attempts) - 1
        )
        if prepared:
            size = prepared.request.content_length
            view = _add_payload(view, prepared.request.elide(), "", size, "")
        stops.append(view)
    return RunView(
        sentence=headline, tone=tone, stops=stops, real=True, answer=answer, request_id=read_request_id(request)
    )
