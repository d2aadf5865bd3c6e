"""When nothing of a request may be dropped, candidates that do not support all of it are skipped with a reason."""

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
    """A host of Anthropic's protocol, which has no `seed`, and one of OpenAI's, which has it."""
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
    """Set by the route's `onDrop` or by the request; the attempt names what would have been dropped."""
    done = send(RouteSpec("draft", ROUTE.candidates, on_drop=on_drop), refuses_drops=strict)
    first, second = done.attempts
    assert (first.outcome, first.param, second.outcome) == (SkipReason.WOULD_DROP, "seed", "ok")
    assert "seed" in first.error
    assert [each.json["seed"] for each in lab.requests] == [7]


@pytest.mark.django_db(databases=["default", "logs"])
def test_without_that_word_the_first_candidate_answers_and_says_what_it_left_out(lab: Lab):
    """Dropping is the default, and the attempt lists what was dropped."""
    (attempt,) = send(RouteSpec("draft", ROUTE.candidates)).attempts
    assert (attempt.outcome, attempt.dropped_params) == ("ok", ("seed",))


@pytest.mark.django_db(databases=["default", "logs"])
def test_when_nobody_takes_it_all_the_request_is_refused_with_the_place(lab: Lab):
    """The status is 400 with `param`, because a retry would not help."""
    with pytest.raises(RequestNotAcceptedError) as caught:
        send(RouteSpec("draft", (CandidateSpec("claude"),), on_drop=REFUSE))
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "would_drop", "seed")
    assert lab.requests == []


@pytest.mark.django_db(databases=["default", "logs"])
def test_a_simulation_passes_the_same_candidates_by(lab: Lab):
    found = simulate(snapshot.current(), ROUTE, SEEDED)
    assert [stop.outcome for stop in found.stops] == [SkipReason.WOULD_DROP, "ok"]
    (answering, _) = simulate(snapshot.current(), RouteSpec("draft", ROUTE.candidates), SEEDED).stops
    assert answering.attempt is not None
    assert answering.attempt.dropped_params == ("seed",)


def test_what_a_model_refuses_is_not_left_out_for_it():
    """The next candidate is called instead; the refused parameter is not dropped for a retry."""
    upstream = FakeUpstream({"a": [UNSUPPORTED], "b": ["ok"]})
    end = Stage().run(Plan(chain("a", "b"), refuses_drops=True), upstream)
    assert isinstance(end, RunResult)
    assert upstream.asked == ["a", "b"]


def test_an_outage_beside_it_is_still_an_outage():
    """The error is 400 only if every candidate was skipped because of the request; otherwise it stays 502."""
    alone = Stage().run(Plan(chain("a"), refuses_drops=True), FakeUpstream({"a": [UNSUPPORTED]}))
    assert isinstance(alone, RequestNotAcceptedError)
    assert alone.param == "seed"
    down = FakeUpstream({"a": [UNSUPPORTED], "b": [503]})
    both = Stage().run(Plan(chain("a", "b"), refuses_drops=True), down)
    assert isinstance(both, AggregateRouterError)
    assert both.status == 502


def test_a_refusal_of_all_candidates_is_told_in_the_readers_language_without_repeating_them() -> None:
    """The page lists the attempts itself, so the message does not repeat them."""
    refused = RequestNotAcceptedError(
        (Attempt("echo", "m", "skipped_would_drop", error="It would leave out seed."),), "seed"
    )
    with override("zh-hans"):
        told = render_sentence(refused.message)
    assert (told.ours[:6], told.quoted) == ("没有候选模型", "")
