"""A route is simulated without network access. An administrator's connection test uses the network."""

from __future__ import annotations

import json

import pytest

from capabilities.core.delivery.decision import Outcome
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Answer, Failure, Fault
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.provider_checks import ModelList, provider_checker
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import NOT_REACHED, simulate
from routing_admin.gateway.media import bytes_part
from routing_admin.upstream import process_upstream, run_sync
from tests.gateway.plane import PNG
from tests.lab import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

IMAGE_REQUEST = ChatRequest((Message(Role.USER, (TextPart("Look"), bytes_part(PNG, "image/png", "dot.png"))),))


@pytest.fixture
def state(demo: None) -> snapshot.Snapshot:
    return snapshot.current()


def test_draft_chain_is_simulated_without_waiting(state):
    """The payload of every candidate is shown, even if the candidate is not reached."""
    chain = (
        CandidateSpec("openai", "gpt-4"),
        CandidateSpec("echo", "echo-vision"),
        CandidateSpec("echo", "echo-text"),
    )
    # Candidate 0 fails three times, and then candidate 1 answers.
    script = {0: ["429", "503", "500"], 1: ["200"]}
    simulation = simulate(state, RouteSpec("draft", chain), IMAGE_REQUEST, script, assume_usable=True)
    assert [stop.outcome for stop in simulation.stops] == ["http_500", "ok", NOT_REACHED]
    assert len(simulation.stops[0].waits) == 2
    assert simulation.ok
    assert simulation.answered_by is not None
    assert simulation.answered_by.model == "echo-vision"
    assert [stop.deliveries[0].delivery.outcome for stop in simulation.stops] == [
        Outcome.DESCRIBED,
        Outcome.NATIVE,
        Outcome.DESCRIBED,
    ]
    assert f"<{len(PNG)} bytes>" in repr(simulation.stops[1].payload)


# Maps the only candidate's scripted outcome to the status that the caller receives, streamed or not.
SEEN = {
    "200": 200,
    "cut": 200,
    "empty": 502,
    "html": 502,
    "refused": 502,
    "timeout": 504,
    "400": 400,
    "context": 400,
    "parameter": 400,
    "cannot_read": 502,
    "401": 502,
    "402": 502,
    "403": 502,
    "404": 404,
    "413": 413,
    "429": 429,
    "429_wait": 429,
    "quota": 429,
    "500": 502,
    "503": 502,
    "529": 502,
}


@pytest.mark.parametrize("outcome", sorted(SCRIPTED))
def test_scripted_outcome_in_a_simulation_gives_the_status_of_a_real_request(state, outcome):
    route = RouteSpec("draft", (CandidateSpec("echo", "echo-vision"),))
    simulation = simulate(state, route, IMAGE_REQUEST, {0: [outcome]}, stream=True)
    assert simulation.ok == (outcome == "200")
    assert simulation.status == SEEN[outcome]
    assert simulation.stops[0].attempt is not None


class Recorder:
    """A transport that records payloads and sends nothing."""

    def __init__(self) -> None:
        self.payloads: list[object] = []

    async def call(self, prepared, to, timeouts, proxy):
        self.payloads.append(prepared.request.elide())
        return Answer("recorded")

    async def open(self, prepared, to, timeouts, proxy):
        raise AssertionError("not streamed here")


def test_simulated_payload_equals_the_payload_sent(state):
    for service in state.configuration.services:
        route = RouteSpec("draft", (CandidateSpec(service.provider, service.model),))
        payload = simulate(state, route, IMAGE_REQUEST, assume_usable=True).stops[0].payload
        transport = Recorder()
        run_sync(Dispatch(plan_request(state, route, IMAGE_REQUEST, unusable={}), transport).answer())
        assert transport.payloads == [payload]


def test_unknown_scripted_outcome_raises_key_error(state):
    route = RouteSpec("draft", (CandidateSpec("echo"),))
    with pytest.raises(KeyError):
        simulate(state, route, IMAGE_REQUEST, {0: ["418"]})


def test_provider_check_reports_an_answer_or_a_missing_key(demo: None):
    assert provider_checker().test("echo", "").fault == ""
    assert provider_checker().models("echo").models == ("echo-text", "echo-vision", "echo-503")
    refused = provider_checker().test("openai", "")
    assert refused.fault == "key_missing"
    assert "LLM_PROVIDER_OPENAI_API_KEY" in refused.message


def test_provider_connection_is_tested_over_a_real_socket(demo: None):
    with Lab({"up": "ok", "down": "http_401"}) as lab:
        for name in ("up", "down"):
            Provider.objects.create(
                name=name, endpoint=lab.url("openai", name), default_model="lab", protocol="openai", key_source="none"
            )
        snapshot.refresh()
        good, bad = provider_checker().test("up", ""), provider_checker().test("down", "")
        run_sync(process_upstream().close())
    assert (good.fault, good.status) == ("", 200)
    assert (bad.fault, bad.status) == ("http_401", 401)


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (200, b"null", Fault.BAD_SHAPE),
        (200, b'{"data": []}', Fault.BAD_SHAPE),
        (200, b"<html>", Fault.BAD_JSON),
        (401, b'{"error": {"message": "no key"}}', Fault.HTTP_401),
    ],
)
def test_model_list_response_without_models_is_a_failure(status: int, body: bytes, fault: Fault) -> None:
    answer = ModelList().decode(status, {}, body)
    assert isinstance(answer, Failure)
    assert answer.fault is fault


@pytest.mark.parametrize("body", [b'{"data": [{"id": "m"}]}', b'{"models": [{"name": "models/m"}]}', b'["m"]'])
def test_model_list_of_every_vendor_is_read(body: bytes) -> None:
    answer = ModelList().decode(200, {}, body)
    assert isinstance(answer, Answer)
    assert len(json.loads(answer.text)) == 1
