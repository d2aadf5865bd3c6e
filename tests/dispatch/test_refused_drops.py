"""If nothing may be dropped from a request, candidates that do not support all of it are skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.translation import override

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Failure, Fault
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import REFUSE, CandidateSpec, RouteSpec
from routing_admin.core.fallback.chain import Attempt, Plan, RunResult, SkipReason
from routing_admin.core.fallback.errors import AggregateRouterError, RequestNotAcceptedError
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import simulate
from routing_admin.request_log.sentences import render_sentence
from routing_admin.upstream import process_upstream, run_sync
from tests.fallback.scripted_runs import FakeUpstream, Stage, chain
from tests.lab import Lab

SEEDED = ChatRequest((Message(Role.USER, (TextPart("hello"),)),), extra={"seed": 7})
ROUTE = RouteSpec("draft", (CandidateSpec("claude"), CandidateSpec("gpt")), on_drop=REFUSE)
UNSUPPORTED = Failure(Fault.UNSUPPORTED_PARAMETER, "no seed here", 400, param="seed")


@pytest.fixture
def lab(demo: None) -> Iterator[Lab]:
    """Yield a lab with a host for Anthropic's protocol, which has no `seed`, and one for OpenAI's, which has it."""
    with Lab({"claude": "ok", "gpt": "ok"}) as lab:
        for name, protocol in (("claude", "anthropic"), ("gpt", "openai")):
            url = lab.url(protocol, name)
            Provider.objects.create(
                name=name, endpoint=url, default_model="lab", protocol=protocol, key_source="none", quirks={}
            )
        snapshot.refresh()
        yield lab
        run_sync(process_upstream().close())


def send(route: RouteSpec, **more: Any) -> Any:
    planned = plan_request(snapshot.current(), route, SEEDED, **more)
    return run_sync(Dispatch(planned, run_context=Stage().run_context).answer())


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.parametrize(("on_drop", "strict"), [(REFUSE, False), ("", True)])
def test_candidate_that_would_drop_a_parameter_is_skipped(lab: Lab, on_drop: str, strict: bool):
    """The route's `onDrop` or the request can forbid dropping. The attempt names the parameter."""
    result = send(RouteSpec("draft", ROUTE.candidates, on_drop=on_drop), refuses_drops=strict)
    first, second = result.attempts
    assert (first.outcome, first.param, second.outcome) == (SkipReason.WOULD_DROP, "seed", "ok")
    assert "seed" in first.error
    assert [received.json["seed"] for received in lab.requests] == [7]


@pytest.mark.django_db(databases=["default", "logs"])
def test_first_candidate_answers_by_default_and_lists_dropped_parameters(lab: Lab):
    (attempt,) = send(RouteSpec("draft", ROUTE.candidates)).attempts
    assert (attempt.outcome, attempt.dropped_params) == ("ok", ("seed",))


@pytest.mark.django_db(databases=["default", "logs"])
def test_request_is_rejected_if_every_candidate_would_drop_a_parameter(lab: Lab):
    """The caller gets a 400 with `param`, since a retry would not help."""
    with pytest.raises(RequestNotAcceptedError) as caught:
        send(RouteSpec("draft", (CandidateSpec("claude"),), on_drop=REFUSE))
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "would_drop", "seed")
    assert lab.requests == []


@pytest.mark.django_db(databases=["default", "logs"])
def test_simulation_skips_candidates_that_would_drop_a_parameter(lab: Lab):
    simulation = simulate(snapshot.current(), ROUTE, SEEDED)
    assert [stop.outcome for stop in simulation.stops] == [SkipReason.WOULD_DROP, "ok"]
    (answering, _) = simulate(snapshot.current(), RouteSpec("draft", ROUTE.candidates), SEEDED).stops
    assert answering.attempt is not None
    assert answering.attempt.dropped_params == ("seed",)


def test_rejected_parameter_is_not_dropped_for_a_retry_if_drops_are_refused():
    """If a parameter may not be dropped, the next candidate is called instead."""
    upstream = FakeUpstream({"a": [UNSUPPORTED], "b": ["ok"]})
    end = Stage().run(Plan(chain("a", "b"), refuses_drops=True), upstream)
    assert isinstance(end, RunResult)
    assert upstream.called == ["a", "b"]


def test_outage_among_skipped_candidates_is_a_502_instead_of_a_400():
    """The caller gets a 400 only if every candidate was skipped because of the request. Otherwise, it gets a 502."""
    alone = Stage().run(Plan(chain("a"), refuses_drops=True), FakeUpstream({"a": [UNSUPPORTED]}))
    assert isinstance(alone, RequestNotAcceptedError)
    assert alone.param == "seed"
    down = FakeUpstream({"a": [UNSUPPORTED], "b": [503]})
    both = Stage().run(Plan(chain("a", "b"), refuses_drops=True), down)
    assert isinstance(both, AggregateRouterError)
    assert both.status == 502


def test_message_for_a_request_no_candidate_accepts_is_translated_without_attempts() -> None:
    """The message on a page does not repeat the attempts, because the page lists them."""
    refused = RequestNotAcceptedError(
        (Attempt("echo", "m", "skipped_would_drop", error="It would leave out seed."),), "seed"
    )
    with override("zh-hans"):
        rendered = render_sentence(refused.message)
    assert (rendered.ours[:6], rendered.quoted) == ("没有候选模型", "")
