"""With `onOverflow`, a model is skipped if the request is too long for it. The attempt records the reason."""

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
# This text has about 5,500 tokens.
LONG = "many words " * 2000
CHAIN = (CandidateSpec("small"), CandidateSpec("large"))
ROUTE = RouteSpec("draft", CHAIN, on_overflow=SKIP)
LIMITS: dict[str, dict[str, int]] = {
    "small": {"contextTokens": 2000, "outputTokens": 500},
    "large": {"contextTokens": 9000, "outputTokens": 8000},
}


@pytest.fixture
def lab(demo: None) -> Iterator[Lab]:
    """Yield models whose services declare context windows of 2,000 and 9,000 tokens, and one without limits."""
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


def chat(text: str, **more: Any) -> ChatRequest:
    return ChatRequest((Message(Role.USER, (TextPart(text),)),), **more)


def send(route: RouteSpec, request: ChatRequest) -> Any:
    planned = plan_request(snapshot.current(), route, request)
    return run_sync(Dispatch(planned, run_context=Stage().run_context).answer())


def test_model_is_skipped_if_the_request_clearly_exceeds_its_context(lab: Lab):
    first, second = send(ROUTE, chat(LONG)).attempts
    assert (first.outcome, second.outcome, second.provider) == (SkipReason.TOO_LONG, "ok", "large")
    assert first.error == "It reads up to about 2,000 tokens; this request has about 5,500."
    assert len(lab.requests) == 1


def test_token_estimate_near_the_context_limit_skips_no_candidate(lab: Lab):
    """A token estimate may be wrong by half."""
    (attempt,) = send(ROUTE, chat("many words " * 1000)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_model_is_skipped_if_the_requested_output_is_too_long(lab: Lab):
    """The requested output length is exact, so no margin applies."""
    first, second = send(ROUTE, chat("hello", max_tokens=501)).attempts
    assert (first.error, second.provider) == ("It writes up to 500 tokens; this request asks for up to 501.", "large")
    (only,) = send(ROUTE, chat("hello", max_tokens=500)).attempts
    assert only.provider == "small"


def test_no_model_is_skipped_for_request_length_by_default(lab: Lab):
    (attempt,) = send(RouteSpec("draft", CHAIN), chat(LONG)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_request_too_long_for_all_models_is_sent_anyway(lab: Lab):
    (attempt,) = send(ROUTE, chat(LONG * 4)).attempts
    assert (attempt.outcome, attempt.provider) == ("ok", "small")


def test_model_without_known_token_limits_is_called(lab: Lab):
    """If a model without known limits reports an overflow, the next candidate is called."""
    route = RouteSpec("draft", (CandidateSpec("strict"), CandidateSpec("large")), on_overflow=SKIP)
    first, second = send(route, chat("hello")).attempts
    assert (first.outcome, second.outcome) == ("http_400_context", "ok")
    with pytest.raises(UpstreamRefused):
        send(RouteSpec("draft", route.candidates), chat("hello"))


def test_simulation_skips_models_for_which_the_request_is_too_long(lab: Lab):
    simulation = simulate(snapshot.current(), ROUTE, chat(LONG))
    assert [stop.outcome for stop in simulation.stops] == [SkipReason.TOO_LONG, "ok"]
