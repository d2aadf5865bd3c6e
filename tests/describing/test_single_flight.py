"""Concurrent calls that need the same file description share one request to the describer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from routing_admin.dispatch.descriptions.cache import SingleFlight


def asker(name: str, gate: asyncio.Event, askers: list[str], result: str = "words") -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        askers.append(name)
        await gate.wait()
        return result

    return ask


def is_shareable(_: str) -> bool:
    return True


def test_concurrent_calls_for_one_description_share_one_request() -> None:
    async def run() -> tuple[list[str], list[str]]:
        flights, gate, askers = SingleFlight[str](), asyncio.Event(), list[str]()
        tasks = [asyncio.create_task(flights.join("k", asker(name, gate, askers), is_shareable)) for name in "ab"]
        await asyncio.sleep(0)
        gate.set()
        results = await asyncio.gather(*tasks)
        await flights.join("k", asker("c", gate, askers), is_shareable)
        return results, askers

    assert asyncio.run(run()) == (["words", "words"], ["a", "c"])


def test_waiting_call_sends_the_request_itself_if_the_first_is_cancelled() -> None:
    async def run() -> tuple[str, list[str]]:
        flights, gate, askers = SingleFlight[str](), asyncio.Event(), list[str]()
        first = asyncio.create_task(flights.join("k", asker("a", gate, askers), is_shareable))
        second = asyncio.create_task(flights.join("k", asker("b", gate, askers), is_shareable))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second, askers

    assert asyncio.run(run()) == ("words", ["a", "b"])


def test_result_valid_for_only_one_caller_is_not_shared() -> None:
    """For example, an exhausted budget applies to one caller only."""

    async def run() -> tuple[list[str], list[str]]:
        flights, gate, askers = SingleFlight[str](), asyncio.Event(), list[str]()
        first = asyncio.create_task(flights.join("k", asker("a", gate, askers, "too poor"), is_shareable))
        second = asyncio.create_task(flights.join("k", asker("b", gate, askers), lambda result: result != "too poor"))
        await asyncio.sleep(0)
        gate.set()
        return list(await asyncio.gather(first, second)), askers

    assert asyncio.run(run()) == (["too poor", "words"], ["a", "b"])
