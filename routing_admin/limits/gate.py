"""What a call reserves of its agent's limits before it is made, and settles when it has ended, however it ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from django.db import connections
from django.utils import timezone

from capabilities.core.prices import Price, amount_text
from capabilities.core.services.agent_limits import MONEY, RATES, TOKENS, AgentLimits, Meter
from capabilities.core.wire import Usage
from routing_admin.core.limits.estimates import nanos_of, tokens_of, usage_of
from routing_admin.core.limits.sentences import (
    BUDGET_EXCEEDED,
    RATE_EXCEEDED,
    SILENT,
    RefusedNeed,
    duration_of,
    sentence_of,
)
from routing_admin.core.limits.shares import Share
from routing_admin.core.limits.windows import Window
from routing_admin.databases.away import AGAIN_SECONDS, UNAVAILABLE, is_away
from routing_admin.limits.cells import Waiter
from routing_admin.limits.keeper import ShareKeeper
from routing_admin.limits.rows import WAIT_SECONDS, RowLedger

PLACE_SECONDS = 0.5
"""How long it waits for a place among those under way."""
WARN_PERCENT = 80
"""From here on a caller is warned of its budgets."""
USED_AT_ONCE = frozenset({Meter.REQUESTS_PER_MINUTE, Meter.BYTES_PER_DAY})
"""What is used as soon as a call is let in, whatever becomes of it."""


class LimitReachedError(Exception):
    """A call that an agent's limits do not let in, or of which nobody can say; `headers` say what is left."""

    def __init__(self, status: int, code: str, message: str, retry_after: float, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after
        self.should_retry, self.headers = code != BUDGET_EXCEEDED, headers


class Reservation:
    """What one call holds of its agent's limits; it ends with `settle`, or with `close` where nothing came of it."""

    __slots__ = ("_agent", "_held", "_keeper", "_most", "_question", "currency")

    def __init__(self, agent: str, limits: AgentLimits, keeper: ShareKeeper) -> None:
        self._agent, self._most, self._keeper, self.currency = agent, limits.most, keeper, limits.currency
        self._held: list[tuple[Meter, Window, int]] = []
        self._question = 0

    @property
    def counts_usage(self) -> bool:
        """Whether it matters how many tokens the call takes, or what they cost."""
        return self.counts_money or any(meter in self._most for meter in TOKENS)

    @property
    def counts_money(self) -> bool:
        """Whether it matters what the call costs, in the currency of the limits."""
        return any(meter in self._most for meter in MONEY)

    async def enter(self, size: int) -> None:
        """Lets in a call of so many bytes, which is under way then. Raises `LimitReachedError`."""
        await self._reserve(self._entry(size))

    def enter_in_thread(self, size: int) -> None:
        """The same for a thread without an event loop."""
        self._reserve_in_thread(self._entry(size))

    async def reserve(self, question: int, answer: int, nanos: int) -> None:
        """Reserves the tokens of the request and those that its answer may have, and what they may cost.

        Raises `LimitReachedError`.
        """
        self._question = question
        await self._reserve(dict.fromkeys(TOKENS, question + answer) | dict.fromkeys(MONEY, nanos))

    def settle(self, usage: Usage | None, text: str = "", price: Price | None = None) -> None:
        """The call ended with that usage, where its provider counted; else with that text, as far as it came."""
        if not self._held:
            return
        used: dict[Meter, int] = {}
        if self.counts_usage:
            real = usage_of(usage, self._question, text)
            used = dict.fromkeys(TOKENS, tokens_of(real) or 0) | dict.fromkeys(
                MONEY, nanos_of(real, price, self.currency)
            )
        held, self._held = self._held, []
        for meter, window, amount in held:
            self._keeper.settle(self._agent, meter, window, amount, used.get(meter, 0))

    def close(self) -> None:
        """The call came to nothing; what is settled stays so."""
        self.settle(None)

    def headers(self) -> dict[str, str]:
        """What is left of the limits, in the names of OpenAI's headers, and a warning of budgets that run out."""
        shares = {meter: self._keeper.share_of(self._agent, meter, limit) for meter, limit in self._most.items()}
        found: dict[str, str] = {}
        if Meter.REQUESTS_PER_MINUTE in shares:
            found |= _headers_of("requests", shares[Meter.REQUESTS_PER_MINUTE])
        tokens = [shares[meter] for meter in TOKENS if meter in shares]
        if tokens:
            found |= _headers_of("tokens", min(tokens, key=lambda share: share.remaining))
        money = [shares[meter] for meter in MONEY if meter in shares]
        if money:
            found |= _money_headers(min(money, key=lambda share: share.remaining), self.currency)
        warnings = [
            f"{meter.value}={percent_of(share.limit - share.remaining, share.limit)}%"
            for meter, share in shares.items()
            if meter not in RATES and percent_of(share.limit - share.remaining, share.limit) >= WARN_PERCENT
        ]
        return found | ({"x-routing-budget-warning": ", ".join(warnings)} if warnings else {})

    def _entry(self, size: int) -> dict[Meter, int]:
        return {Meter.REQUESTS_PER_MINUTE: 1, Meter.BYTES_PER_DAY: size, Meter.IN_FLIGHT: 1}

    async def _reserve(self, needs: Mapping[Meter, int]) -> None:
        steps = self._reserving(needs)
        with suppress(StopIteration):
            waiter = next(steps)
            while True:
                try:
                    window = await self._wait(waiter)
                except BaseException as error:
                    steps.throw(error)
                    raise
                waiter = steps.send(window)

    def _reserve_in_thread(self, needs: Mapping[Meter, int]) -> None:
        steps = self._reserving(needs)
        with suppress(StopIteration):
            waiter = next(steps)
            while True:
                try:
                    window = self._wait_in_thread(waiter)
                except BaseException as error:
                    steps.throw(error)
                    raise
                waiter = steps.send(window)

    def _reserving(self, needs: Mapping[Meter, int]) -> Generator[Waiter, Window, None]:
        """Reserves all of it or nothing; yields whom it has to wait for, and is sent the window in which it has it."""
        begun = len(self._held)
        try:
            for meter, amount in needs.items():
                if meter in self._most:
                    found = self._keeper.reserve(self._agent, meter, self._most[meter], amount)
                    window = (yield found) if isinstance(found, Waiter) else found
                    self._held.append((meter, window, amount))
        except BaseException:
            given, self._held = self._held[begun:], self._held[:begun]
            for meter, window, amount in given:
                self._keeper.settle(self._agent, meter, window, amount, 0)
            raise
        self._use_at_once()

    def _use_at_once(self) -> None:
        used = [each for each in self._held if each[0] in USED_AT_ONCE]
        self._held = [each for each in self._held if each[0] not in USED_AT_ONCE]
        for meter, window, amount in used:
            self._keeper.settle(self._agent, meter, window, amount, amount)

    async def _wait(self, waiter: Waiter) -> Window:
        """The window in which it is reserved then. Raises `LimitReachedError`."""
        try:
            async with asyncio.timeout(_patience(waiter)):
                window = await asyncio.shield(asyncio.wrap_future(waiter.answer))
        except TimeoutError:
            window = self._give_up(waiter)
        except asyncio.CancelledError:
            with suppress(LimitReachedError):
                window = self._give_up(waiter)
                if window is not None:
                    self._keeper.settle(self._agent, waiter.cell.meter, window, waiter.amount, 0)
            raise
        return self._check(waiter, window)

    def _wait_in_thread(self, waiter: Waiter) -> Window:
        try:
            window = waiter.answer.result(_patience(waiter))
        except TimeoutError:
            window = self._give_up(waiter)
        return self._check(waiter, window)

    def _give_up(self, waiter: Waiter) -> Window | None:
        try:
            return self._keeper.give_up(waiter)
        except TimeoutError:
            raise LimitReachedError(503, UNAVAILABLE, SILENT, AGAIN_SECONDS, {}) from None

    def _check(self, waiter: Waiter, window: Window | None) -> Window:
        if window is not None:
            return window
        meter, share, now = waiter.cell.meter, waiter.cell.share, datetime.now(UTC)
        ends_at = share.window.ends_at
        seconds = (ends_at - now).total_seconds() if ends_at else 1.0
        local = timezone.localtime(ends_at) if ends_at else None
        need = RefusedNeed(meter, share.limit, share.remaining, waiter.amount, self.currency)
        sentence = sentence_of(need, local, now)
        code = RATE_EXCEEDED if meter in RATES else BUDGET_EXCEEDED
        raise LimitReachedError(429, code, sentence, seconds, self.headers())


def limit_headers(error: LimitReachedError) -> dict[str, str]:
    """What a refusal says beside its words: what is left, and when to come again."""
    again = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return {**error.headers, **again, "x-should-retry": "true" if error.should_retry else "false"}


def percent_of(used: int, limit: int) -> int:
    """How much of a limit is used, in whole percent."""
    return used * 100 // limit if limit else 100


def _headers_of(name: str, share: Share) -> dict[str, str]:
    ends_at = share.window.ends_at
    values = {"limit": str(share.limit), "remaining": str(share.remaining)}
    if ends_at is not None:
        values["reset"] = duration_of(ends_at - datetime.now(UTC))
    return {f"x-ratelimit-{word}-{name}": value for word, value in values.items()}


def _money_headers(share: Share, currency: str) -> dict[str, str]:
    found = {"limit": amount_text(share.limit), "remaining": amount_text(share.remaining), "currency": currency}
    if share.window.ends_at is not None:
        found["reset"] = duration_of(share.window.ends_at - datetime.now(UTC))
    return {f"x-routing-budget-{word}": value.replace(",", "") for word, value in found.items()}


def _patience(waiter: Waiter) -> float:
    return PLACE_SECONDS if waiter.cell.is_of_moment else WAIT_SECONDS


keeper = ShareKeeper(RowLedger(), timezone.get_default_timezone, is_away, connections.close_all)
"""This process's."""


def reservation_of(agent: str, limits: AgentLimits | None) -> Reservation | None:
    """What a call of that agent will hold of its limits; None where nothing is counted."""
    return None if limits is None or not limits.most else Reservation(agent, limits, keeper)
