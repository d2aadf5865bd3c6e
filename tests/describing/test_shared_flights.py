"""Concurrent calls that need the same description share one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from routing_admin.dispatch.descriptions.cache import SingleFlight


def asker(name: str, gate: asyncio.Event, asked: list[str], word: str = "words") -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        asked.append(name)
        await gate.wait()
        return word

    return ask


def everybody(_: str) -> bool:
    return True


def test_one_asks_and_both_hear() -> None:
    """A second concurrent call waits for the first one's result; a later call makes a request of its own."""

    async def run() -> tuple[list[str], list[str]]:
        flights, gate, asked = SingleFlight[str](), asyncio.Event(), list[str]()
        both = [asyncio.create_task(flights.join("k", asker(name, gate, asked), everybody)) for name in "ab"]
        await asyncio.sleep(0)
        gate.set()
        heard = await asyncio.gather(*both)
        await flights.join("k", asker("c", gate, asked), everybody)
        return heard, asked

    assert asyncio.run(run()) == (["words", "words"], ["a", "c"])


def test_a_caller_that_leaves_lets_the_next_one_ask() -> None:
    """If the call that made the request is cancelled, a waiting one makes it again."""

    async def run() -> tuple[str, list[str]]:
        flights, gate, asked = SingleFlight[str](), asyncio.Event(), list[str]()
        first = asyncio.create_task(flights.join("k", asker("a", gate, asked), everybody))
        second = asyncio.create_task(flights.join("k", asker("b", gate, asked), everybody))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second, asked

    assert asyncio.run(run()) == ("words", ["a", "b"])


def test_what_is_one_caller_s_own_is_not_passed_on() -> None:
    """A result that is only valid for one caller, such as a used-up budget, is not shared."""

    async def run() -> tuple[list[str], list[str]]:
        flights, gate, asked = SingleFlight[str](), asyncio.Event(), list[str]()
        mine = asyncio.create_task(flights.join("k", asker("a", gate, asked, "too poor"), everybody))
        yours = asyncio.create_task(flights.join("k", asker("b", gate, asked), lambda word: word != "too poor"))
        await asyncio.sleep(0)
        gate.set()
        return list(await asyncio.gather(mine, yours)), asked

    assert asyncio.run(run()) == (["too poor", "words"], ["a", "b"])
