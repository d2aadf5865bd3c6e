"""With `onOverflow`, a request skips the models it is too long for, and each skipped attempt says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import SKIP, CandidateSpec, RouteSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.fallback.errors import UpstreamRefused
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import simulate
from routing_admin.upstream import process_upstream, run_sync
from tests.fallback.scripted_runs import Stage
from tests.lab import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
# About 5,500 tokens.
LONG = "many words " * 2000
CHAIN = (CandidateSpec("small"), CandidateSpec("large"))
ROUTE = RouteSpec("draft", CHAIN, on_overflow=SKIP)
LIMITS: dict[str, dict[str, int]] = {
    "small": {"contextTokens": 2000, "outputTokens": 500},
    "large": {"contextTokens": 9000, "outputTokens": 8000},
}


@pytest.fixture
def lab(demo: None) -> Iterator[Lab]:
    """Models whose services declare context windows of 2,000 and 9,000 tokens, and one without limits."""
    with Lab({"small": "ok", "large": "ok", "strict": "context_length"}) as lab:
        for name in ("small", "large", "strict"):
            row = Provider.objects.create(
                name=name, endpoint=lab.url("openai", name), default_model="lab", key_source="none", quirks={}
            )
            limits = LIMITS.get(name, {})
            Service.objects.create(service_id=name, name=name, provider=row, model="lab", limits=limits)
        snapshot.refresh()
        yield lab
        run_sync(process_upstream().close())


def chat(words: str, **more: Any) -> ChatRequest:
    return ChatRequest((Message(Role.USER, (TextPart(words),)),), **more)


def send(route: RouteSpec, asked: ChatRequest) -> Any:
    planned = plan_request(snapshot.current(), route, asked)
    return run_sync(Dispatch(planned, run_context=Stage().run_context).answer())


def test_a_model_that_it_is_well_too_long_for_is_passed_by(lab: Lab):
    """The attempt gives the model's limit and the estimated length; the next candidate is called."""
    first, second = send(ROUTE, chat(LONG)).attempts
    assert (first.outcome, second.outcome, second.provider) == (SkipReason.TOO_LONG, "ok", "large")
    assert first.error == "It reads up to about 2,000 tokens; this request has about 5,500."
    assert len(lab.requests) == 1


def test_an_estimate_near_the_limit_passes_nobody_by(lab: Lab):
    """An estimate may be off by half, so only a clear excess counts."""
    (attempt,) = send(ROUTE, chat("many words " * 1000)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_an_answer_longer_than_a_model_writes_passes_it_by(lab: Lab):
    """The requested output length is exact, so there is no margin."""
    first, second = send(ROUTE, chat("hello", max_tokens=501)).attempts
    assert (first.error, second.provider) == ("It writes up to 500 tokens; this request asks for up to 501.", "large")
    (only,) = send(ROUTE, chat("hello", max_tokens=500)).attempts
    assert only.provider == "small"


def test_without_that_word_the_model_judges_for_itself(lab: Lab):
    """By default no candidate is skipped because of an estimate."""
    (attempt,) = send(RouteSpec("draft", CHAIN), chat(LONG)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_a_request_too_long_for_all_is_sent_as_ever(lab: Lab):
    """If every candidate would be skipped, the first one is called."""
    (attempt,) = send(ROUTE, chat(LONG * 4)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_a_model_whose_limits_nobody_knows_fits_everything(lab: Lab):
    """A model without known limits is called; if it reports an overflow itself, the next candidate is called."""
    route = RouteSpec("draft", (CandidateSpec("strict"), CandidateSpec("large")), on_overflow=SKIP)
    first, second = send(route, chat("hello")).attempts
    assert (first.outcome, second.outcome) == ("http_400_context", "ok")
    with pytest.raises(UpstreamRefused):
        send(RouteSpec("draft", route.candidates), chat("hello"))


def test_a_simulation_passes_the_same_models_by(lab: Lab):
    found = simulate(snapshot.current(), ROUTE, chat(LONG))
    assert [stop.outcome for stop in found.stops] == [SkipReason.TOO_LONG, "ok"]
