"""A token limit is never dropped.

If the provider rejects the limit as `max_tokens`, it is sent as `max_completion_tokens`, and vice versa.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Delta
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.core.fallback.chain import Attempt
from routing_admin.core.fallback.errors import RouterError, UpstreamRefused
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.send import Dispatch
from routing_admin.dispatch.simulation import simulate
from routing_admin.upstream import process_upstream, run_sync
from tests.fallback.scripted_runs import Stage
from tests.lab import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

NEW, OLD = "max_completion_tokens", "max_tokens"
NAMES = frozenset({NEW, OLD, "maxOutputTokens"})
HOUR = 3600
HELLO = ChatRequest((Message(Role.USER, (TextPart("hello"),)),), max_tokens=7)


@dataclass
class RouterHarness:
    """A configuration with the fault lab's providers, and a run context with a simulated clock."""

    lab: Lab
    stage: Stage = field(default_factory=Stage)

    def provider(self, name: str, protocol: str = "openai", **quirks: object) -> None:
        url = self.lab.url(protocol, name)
        Provider.objects.create(
            name=name, endpoint=url, default_model="lab", protocol=protocol, key_source="none", quirks=quirks
        )
        snapshot.refresh()

    def ask(self, name: str, chat: ChatRequest = HELLO, **route: Any) -> RouterError | tuple[Attempt, ...]:
        draft = RouteSpec("draft", (CandidateSpec(name),), **route)
        dispatch = Dispatch(plan_request(snapshot.current(), draft, chat), run_context=self.stage.run_context)
        try:
            return run_sync(dispatch.answer()).attempts
        except RouterError as error:
            return error

    @property
    def limits(self) -> list[dict[str, int]]:
        """The token limits that the fault lab received, by parameter name, in order."""
        bodies = [{**received.json, **received.json.get("generationConfig", {})} for received in self.lab.requests]
        return [{name: body[name] for name in sorted(NAMES & set(body))} for body in bodies]


@pytest.fixture
def harness(request: pytest.FixtureRequest, demo: None) -> Iterator[RouterHarness]:
    """Yield a harness for the fault lab with the script that the decorator `lab` sets."""
    with Lab(request.param) as lab:
        yield RouterHarness(lab)
        run_sync(process_upstream().close())


def lab(**script: str) -> pytest.MarkDecorator:
    """Return a decorator that sets the fault lab's script, which maps a provider to its fault."""
    return pytest.mark.parametrize("harness", [script], indirect=True, ids=["lab"])


@lab(picky=f"parameter:param={NEW}")
def test_rejected_max_completion_tokens_is_replaced_by_max_tokens(harness: RouterHarness) -> None:
    """Later requests use the older name from the start."""
    harness.provider("picky", max_tokens_field=NEW)
    first, second = harness.ask("picky"), harness.ask("picky")
    assert harness.limits == [{NEW: 7}, {OLD: 7}, {OLD: 7}]
    assert [attempts[0].outcome for attempts in (first, second)] == ["ok", "ok"]
    assert [attempts[0].dropped_params for attempts in (first, second)] == [(), ()]


@lab(picky=f"parameter:param={OLD}")
def test_rejected_max_tokens_is_replaced_by_max_completion_tokens(harness: RouterHarness) -> None:
    """The request is retried only once."""
    harness.provider("picky")
    first, second = harness.ask("picky"), harness.ask("picky")
    assert harness.limits == [{OLD: 7}, {NEW: 7}, {NEW: 7}]
    assert [attempts[0].retry_attempts for attempts in (first, second)] == [1, 0]


@lab(picky=f"parameter:param={OLD}")
def test_token_limit_of_a_streamed_request_is_renamed_and_kept(harness: RouterHarness) -> None:
    """A provider rejects a limit before its stream begins."""
    harness.provider("picky")
    route = RouteSpec("draft", (CandidateSpec("picky"),))
    planned = plan_request(snapshot.current(), route, HELLO, stream=True)

    async def read_text() -> str:
        result = await Dispatch(planned, run_context=harness.stage.run_context).open()
        return "".join([event.text async for batch in result.answer for event in batch if isinstance(event, Delta)])

    assert run_sync(read_text()) == "You said: hello"
    assert harness.limits == [{OLD: 7}, {NEW: 7}]


@lab(picky=f"parameter:param={NEW}+temperature")
def test_rejected_parameter_and_renamed_limit_are_remembered_after_a_day(harness: RouterHarness) -> None:
    harness.provider("picky", max_tokens_field=NEW)
    chat = ChatRequest(HELLO.messages, temperature=0.5, max_tokens=7)
    harness.ask("picky", chat)
    count = len(harness.lab.requests) - 1
    harness.stage.clock.now += 24 * HOUR
    harness.ask("picky", chat)
    assert ["temperature" in received.json for received in harness.lab.requests[count:]] == [False, False]
    assert harness.limits[count:] == [{OLD: 7}, {OLD: 7}]


@lab(picky="parameter:param=temperature")
def test_omitted_parameter_is_listed_in_every_attempt(harness: RouterHarness) -> None:
    """Parameters that were omitted because of an earlier refusal are also listed."""
    harness.provider("picky")
    warm = ChatRequest(HELLO.messages, temperature=0.5, max_tokens=7)
    dropped = [harness.ask("picky", chat)[0].dropped_params for chat in (warm, warm, HELLO)]
    assert dropped == [("temperature",), ("temperature",), ()]


@lab(good="ok")
def test_parameter_without_an_equivalent_is_listed_as_dropped(harness: RouterHarness) -> None:
    harness.provider("good")
    attempts = harness.ask("good", ChatRequest(HELLO.messages, inner=("messages[0].audio",)))
    assert (attempts[0].outcome, attempts[0].dropped_params) == ("ok", ("messages[0].audio",))


@lab(picky=f"parameter:param={OLD}+temperature")
def test_rejected_token_limit_and_rejected_parameter_are_corrected_in_one_request(harness: RouterHarness) -> None:
    """Renaming a limit does not count as omitting a parameter."""
    harness.provider("picky")
    warm = ChatRequest(HELLO.messages, temperature=0.5, max_tokens=7)
    attempts = harness.ask("picky", warm)
    assert harness.limits == [{OLD: 7}, {NEW: 7}, {NEW: 7}]
    assert isinstance(attempts, tuple)
    assert (attempts[0].outcome, attempts[0].dropped_params) == ("ok", ("temperature",))


@lab(stern=f"parameter:param={OLD}+{NEW}")
def test_request_fails_if_both_token_limit_names_are_rejected(harness: RouterHarness) -> None:
    """If the provider accepts neither name of the token limit, the request fails, and nothing is remembered."""
    harness.provider("stern")
    for _ in range(2):
        error = harness.ask("stern")
        assert isinstance(error, UpstreamRefused)
        assert (error.status, error.code) == (400, "unsupported_parameter")
    assert harness.limits == [{OLD: 7}, {NEW: 7}] * 2


@lab(stern=f"parameter:param={OLD}+{NEW}", good="ok")
def test_next_candidate_is_called_if_both_token_limit_names_are_rejected(harness: RouterHarness) -> None:
    """The next candidate receives the limit under the name that it accepts."""
    harness.provider("stern")
    harness.provider("good")
    chain = (CandidateSpec("stern"), CandidateSpec("good"))
    route = RouteSpec("draft", chain, on_error={"unsupported_parameter": "next"})
    result = run_sync(
        Dispatch(plan_request(snapshot.current(), route, HELLO), run_context=harness.stage.run_context).answer()
    )
    assert [attempt.outcome for attempt in result.attempts] == ["unsupported_parameter", "ok"]
    assert harness.limits == [{OLD: 7}, {NEW: 7}, {OLD: 7}]


@pytest.mark.parametrize("protocol", ["anthropic", "gemini"])
@lab(stern=f"parameter:param={OLD}+maxOutputTokens")
def test_token_limit_is_never_dropped_in_a_protocol_with_one_limit_name(harness: RouterHarness, protocol: str) -> None:
    """`max_tokens` and `maxOutputTokens` have no other name in these protocols, so the refusal is final."""
    harness.provider("stern", protocol)
    name = {"anthropic": OLD, "gemini": "maxOutputTokens"}[protocol]
    for _ in range(2):
        assert isinstance(harness.ask("stern"), UpstreamRefused)
    assert harness.limits == [{name: 7}] * 2


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "gemini"])
@lab(up="ok")
def test_drop_params_never_removes_the_token_limit(harness: RouterHarness, protocol: str) -> None:
    """If the protocol has two names for the limit, listing one of them in `drop_params` selects the other."""
    harness.provider("up", protocol, drop_params=["max_tokens", "maxOutputTokens", "temperature"])
    harness.ask("up", ChatRequest(HELLO.messages, temperature=0.5, max_tokens=7))
    name = {"openai": NEW, "anthropic": OLD, "gemini": "maxOutputTokens"}[protocol]
    assert harness.limits == [{name: 7}]
    assert b"temperature" not in harness.lab.requests[0].body


@lab(picky=f"parameter:param={OLD}")
def test_token_limit_in_extra_body_is_also_renamed(harness: RouterHarness) -> None:
    """`extraBody` is merged into the request last."""
    harness.provider("picky")
    Service.objects.create(
        service_id="own", provider=Provider.objects.get(name="picky"), model="lab", extra_body={OLD: 5}
    )
    snapshot.refresh()
    harness.ask("picky")
    assert harness.limits == [{OLD: 5}, {NEW: 5}]


@lab(picky=f"parameter:param={OLD}+temperature")
def test_simulation_uses_the_remembered_token_limit_name(harness: RouterHarness) -> None:
    """A simulation does not change what this process remembers."""
    harness.provider("picky")
    warm = ChatRequest(HELLO.messages, temperature=0.5, max_tokens=7)
    harness.ask("picky", warm)
    harness.ask("picky", warm)
    route = RouteSpec("draft", (CandidateSpec("picky"), CandidateSpec("picky", "unreached")))
    memory = harness.stage.run_context.memory
    simulation = simulate(snapshot.current(), route, warm, {0: ["parameter", "200"]}, memory=memory)
    assert simulation.stops[0].payload == harness.lab.requests[-1].json
    simulate(snapshot.current(), route, warm, {1: ["parameter"], 0: ["503"]}, memory=memory)
    assert memory.refusals("picky", "unreached") == ()
