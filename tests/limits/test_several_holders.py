"""If several limits apply to a call, it reserves from all of them or from none. The tightest limit is reported."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial

import pytest
from django.db import DataError, OperationalError

from capabilities.core.prices import Price, Rates, Tier
from capabilities.core.services.agent_limits import AgentLimits, Meter
from capabilities.core.services.limit_holders import LimitHolder, agent_holder, key_holder
from capabilities.core.wire import Answer, Usage
from routing_admin.limits.reservations import LimitReachedError, Reservation, keeper, make_reservation
from routing_admin.limits.uses import find_uses

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("returned_quotas"),
]


def holders(agent: dict[Meter, int], key: dict[Meter, int]) -> tuple[LimitHolder, ...]:
    candidates = agent_holder("a", AgentLimits(maximums=agent)), key_holder("k", AgentLimits(maximums=key))
    return tuple(holder for holder in candidates if holder is not None)


async def call(limited: tuple[LimitHolder, ...], tokens: int) -> Reservation | None:
    """Return a reservation for a call with this many tokens, or None if a limit rejected the call."""
    reservation = make_reservation(limited)
    assert reservation is not None
    try:
        await reservation.enter(1)
        await reservation.reserve(tokens, 0, {})
    except LimitReachedError:
        reservation.close()
        return None
    return reservation


async def test_200_parallel_calls_exceed_none_of_several_limits(db: None) -> None:
    limited = holders({Meter.TOKENS_PER_DAY: 10_000, Meter.IN_FLIGHT: 150}, {Meter.TOKENS_PER_DAY: 3700})
    results = await asyncio.gather(*(call(limited, 100) for _ in range(200)))
    accepted = [result for result in results if result is not None]
    assert len(accepted) == 37
    for reservation in accepted:
        reservation.settle(Usage(60, 0))
    used = await asyncio.to_thread(find_uses, ["agent:a", "key:k"])
    assert used == {
        ("agent:a", Meter.TOKENS_PER_DAY): 37 * 60,
        ("agent:a", Meter.IN_FLIGHT): 0,
        ("key:k", Meter.TOKENS_PER_DAY): 37 * 60,
    }


async def test_failed_call_without_token_counts_is_settled_with_the_rest(db: None) -> None:
    reservation = await call(holders({Meter.TOKENS_PER_DAY: 1000}, {}), 100)
    assert reservation is not None
    reservation.charge(Usage(None, None), {})
    reservation.settle(Usage(60, 0))
    assert await asyncio.to_thread(find_uses, ["agent:a"]) == {("agent:a", Meter.TOKENS_PER_DAY): 60}


async def test_rejection_names_the_limit_that_was_reached(db: None) -> None:
    limited = holders({Meter.TOKENS_PER_DAY: 1000}, {Meter.TOKENS_PER_DAY: 500})
    reservation = make_reservation(limited)
    assert reservation is not None
    await reservation.enter(1)
    with pytest.raises(LimitReachedError) as refused:
        await reservation.reserve(501, 0, {})
    assert refused.value.message.startswith("The key ra_k… has a daily token limit of 500: 500 left")
    assert reservation.headers() == refused.value.headers
    assert refused.value.headers["x-ratelimit-limit-tokens"] == "500"
    await reservation.reserve(450, 0, {})
    reservation.settle(Usage(450, 0))
    assert reservation.headers()["x-routing-budget-warning"] == "key tokensPerDay=90%"


PRICE = Price("USD", (Tier(0, Rates(input=10**6, output=10**6)),))
"""One US dollar per million tokens. This is 1,000 nano-dollars per token."""


@pytest.mark.parametrize("answered", [True, False])
async def test_billed_usage_of_failed_attempts_is_settled(db: None, answered: bool) -> None:
    agent = AgentLimits(maximums={Meter.TOKENS_PER_DAY: 1000, Meter.MONEY_PER_DAY: 10**9}, currency="USD")
    reservation = make_reservation((agent_holder("a", agent),))
    assert reservation is not None
    await reservation.enter(1)
    await reservation.reserve(100, 0, {"USD": 10**8})
    reservation.charge(Usage(7, 3), {"USD": PRICE})
    if answered:
        reservation.settle(Usage(20, 0), None, {"USD": PRICE})
    reservation.close()
    used = await asyncio.to_thread(find_uses, ["agent:a"])
    tokens = 30 if answered else 10
    assert used == {("agent:a", Meter.TOKENS_PER_DAY): tokens, ("agent:a", Meter.MONEY_PER_DAY): tokens * 1000}


async def test_call_cancelled_while_waiting_reserves_nothing(db: None) -> None:
    limited = holders({Meter.TOKENS_PER_DAY: 100}, {Meter.TOKENS_PER_DAY: 100})
    calls = [asyncio.ensure_future(call(limited, 60)) for _ in range(20)]
    await asyncio.sleep(0)
    for waiting_call in calls:
        waiting_call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    used = await asyncio.to_thread(find_uses, ["agent:a", "key:k"])
    assert set(used.values()) <= {0}
    assert await call(limited, 100) is not None


@pytest.mark.parametrize(("is_cut", "tokens"), [(None, 6), (False, 6), (True, 5 + 100)])
async def test_only_usage_of_an_interrupted_answer_is_estimated_from_the_received_text(
    db: None, is_cut: bool | None, tokens: int
) -> None:
    """For a complete answer, the provider's token count applies, even if it is lower than the estimate."""
    limited = holders({Meter.TOKENS_PER_DAY: 1000}, {})
    reservation = await call(limited, 10)
    assert reservation is not None
    settle = reservation.settle if is_cut is None else partial(reservation.settle, is_cut=is_cut)
    settle(Usage(5, 1), Answer("four" * 100))
    assert await asyncio.to_thread(find_uses, ["agent:a"]) == {("agent:a", Meter.TOKENS_PER_DAY): tokens}


@pytest.mark.parametrize(
    ("error", "is_shown"), [(OperationalError("database is locked"), True), (DataError("out of range"), False)]
)
def test_usage_is_shown_without_this_process_while_the_ledger_is_locked(
    db: None, monkeypatch: pytest.MonkeyPatch, error: Exception, is_shown: bool
) -> None:
    """Errors other than a locked ledger are raised."""

    def report() -> None:
        raise error

    monkeypatch.setattr(keeper(), "report", report)
    with nullcontext() if is_shown else pytest.raises(DataError):
        assert find_uses(["agent:a"]) == {}
