"""One of a provider's five keys is invalid, and is skipped until it is valid again (real sockets, simulated clock)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from capabilities.actors import SYSTEM
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from routing_admin.configuration import snapshot
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.send import Dispatch
from routing_admin.upstream import process_upstream, run_sync
from tests.fallback.scripted_runs import Stage
from tests.lab import Lab
from tests.lab.server import key_in

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
KEYS = tuple(f"sk-lab-{number}-0123456789abcdef" for number in range(5))
DEAD = KEYS[3]
TEN_MINUTES = 600


@pytest.fixture
def lab(demo: None) -> Iterator[Lab]:
    """Yield a fault lab with a provider that has five keys and rejects one of them."""
    with Lab({f"pool/{DEAD}": 401}) as lab:
        provider = {
            "providerName": "pool",
            "apiKey": KEYS[0],
            "endpoint": lab.url("openai", "pool"),
            "defaultModel": "lab",
            "keys": [{"apiKey": key} for key in KEYS[1:]],
        }
        file = {"providers": [provider], "routing": {"pooled": {"provider": "pool", "retries": 0}}}
        import_configuration(SYSTEM, [json.dumps(file)])
        yield lab
        run_sync(process_upstream().close())


def ask(stage: Stage, text: str, *, stream: bool) -> str:
    state = snapshot.current()
    chat = ChatRequest((Message(Role.USER, (TextPart(text),)),))
    planned = plan_request(state, state.configuration.route("pooled"), chat, stream=stream)
    dispatch = Dispatch(planned.with_affinity("", "agent"), run_context=stage.run_context)

    async def run() -> str:
        result = await (dispatch.open() if stream else dispatch.answer())
        if stream:
            assert [event async for batch in result.answer for event in batch]
        return result.attempts[-1].outcome

    return run_sync(run())


@pytest.mark.parametrize("stream", [False, True])
def test_invalid_key_is_probed_every_ten_minutes_and_used_again_once_valid(lab, stream):
    """No request fails while one key is invalid."""
    stage = Stage()
    for turn in range(2):
        assert {ask(stage, f"question {turn} {number}", stream=stream) for number in range(10)} == {"ok"}
        stage.clock.now += TEN_MINUTES
    assert Counter(key_in(received.headers) for received in lab.requests)[DEAD] == 2
    lab.play({})
    assert {ask(stage, f"later {number}", stream=stream) for number in range(10)} == {"ok"}
    assert Counter(key_in(received.headers) for received in lab.requests)[DEAD] >= 2
    assert len(lab.requests) == 10
