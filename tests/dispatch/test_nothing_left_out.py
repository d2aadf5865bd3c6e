"""Where nothing of a request may be left out, a candidate that takes less is passed by, and says what it lacks."""

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
from routing_admin.core.fallback.errors import AggregateRouterError, NobodyTakesError
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
    """One host of Anthropic's protocol, which has no `seed`, and one of OpenAI's, which has."""
    with Lab({"claude": "ok", "gpt": "ok"}) as lab:
        for name, protocol in (("claude", "anthropic"), ("gpt", "openai")):
            at = lab.url(protocol, name)
            Provider.objects.create(
                name=name, endpoint=at, default_model="lab", protocol=protocol, key_source="none", quirks={}
            )
        snapshot.refresh()
        yield lab
        run_sync(process_upstream().close())


def send(route: RouteSpec, **more: Any) -> Any:
    planned = plan_request(snapshot.current(), route, SEEDED, **more)
    return run_sync(Dispatch(planned, run_context=Stage().run_context).answer())


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.parametrize(("on_drop", "strict"), [(REFUSE, False), ("", True)])
def test_a_candidate_that_would_leave_something_out_is_passed_by(lab: Lab, on_drop: str, strict: bool):
    """By the route's `onDrop` or the request's own word; the attempt says what would have been lost."""
    done = send(RouteSpec("draft", ROUTE.candidates, on_drop=on_drop), refuses_drops=strict)
    first, second = done.attempts
    assert (first.outcome, first.param, second.outcome) == (SkipReason.WOULD_DROP, "seed", "ok")
    assert "seed" in first.error
    assert [each.json["seed"] for each in lab.requests] == [7]


@pytest.mark.django_db(databases=["default", "logs"])
def test_without_that_word_the_first_candidate_answers_and_says_what_it_left_out(lab: Lab):
    """The default: what is left out is told."""
    (attempt,) = send(RouteSpec("draft", ROUTE.candidates)).attempts
    assert (attempt.outcome, attempt.dropped_params) == ("ok", ("seed",))


@pytest.mark.django_db(databases=["default", "logs"])
def test_when_nobody_takes_it_all_the_request_is_refused_with_the_place(lab: Lab):
    """400 with `param`, since no other time will be better."""
    with pytest.raises(NobodyTakesError) as caught:
        send(RouteSpec("draft", (CandidateSpec("claude"),), on_drop=REFUSE))
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "would_drop", "seed")
    assert lab.requests == []


@pytest.mark.django_db(databases=["default", "logs"])
def test_a_simulation_passes_the_same_candidates_by(lab: Lab):
    """What is simulated is what happens."""
    found = simulate(snapshot.current(), ROUTE, SEEDED)
    assert [stop.outcome for stop in found.stops] == [SkipReason.WOULD_DROP, "ok"]
    (answering, _) = simulate(snapshot.current(), RouteSpec("draft", ROUTE.candidates), SEEDED).stops
    assert answering.attempt is not None
    assert answering.attempt.dropped_params == ("seed",)


def test_what_a_model_refuses_is_not_left_out_for_it():
    """The next candidate is asked instead, and nothing is sent twice with less."""
    upstream = FakeUpstream({"a": [UNSUPPORTED], "b": ["ok"]})
    end = Stage().run(Plan(chain("a", "b"), refuses_drops=True), upstream)
    assert isinstance(end, RunResult)
    assert upstream.asked == ["a", "b"]


def test_an_outage_beside_it_is_still_an_outage():
    """Only where nothing but the request stood in the way is it the request's fault."""
    alone = Stage().run(Plan(chain("a"), refuses_drops=True), FakeUpstream({"a": [UNSUPPORTED]}))
    assert isinstance(alone, NobodyTakesError)
    assert alone.param == "seed"
    down = FakeUpstream({"a": [UNSUPPORTED], "b": [503]})
    both = Stage().run(Plan(chain("a", "b"), refuses_drops=True), down)
    assert isinstance(both, AggregateRouterError)
    assert both.status == 502


def test_a_refusal_of_all_candidates_is_told_in_the_readers_language_without_repeating_them() -> None:
    """The page lists the attempts itself."""
    refused = NobodyTakesError((Attempt("echo", "m", "skipped_would_drop", error="It would leave out seed."),), "seed")
    with override("zh-hans"):
        told = render_sentence(refused.message)
    assert (told.ours[:6], told.quoted) == ("没有候选模型", "")
