"""Reserve amounts from limits before a call, and settle them after the call, however it ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from django.db import connections
from django.utils import timezone

from capabilities.core.prices import Price
from capabilities.core.services.agent_limits import MONEY, RATES, TOKENS, Meter, UnpricedPolicy
from capabilities.core.services.limit_holders import LimitHolder
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Usage
from capabilities.runtime import owned
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.core.limits.estimates import counted_nanos, estimate_usage, total_tokens
from routing_admin.core.limits.sentences import (
    BUDGET_EXCEEDED,
    NO_RESPONSE,
    RATE_EXCEEDED,
    UNPRICED,
    UNPRICED_SENTENCE,
    RefusedNeed,
    refusal_sentence,
)
from routing_admin.core.limits.shares import Window
from routing_admin.limits.headers import build_headers
from routing_admin.limits.local_quota import Waiter
from routing_admin.limits.quota_client import QuotaClient
from routing_admin.limits.rows import RowLedger
from routing_admin.platform.databases.unavailable import RETRY_SECONDS

COUNTED_ON_ENTRY = frozenset({Meter.REQUESTS_PER_MINUTE, Meter.BYTES_PER_DAY})
"""Limits that count a call as soon as it is admitted, regardless of its outcome."""


NO_PRICES: Mapping[str, Price | None] = {}
ALL_PRICED: Mapping[str, str] = {}

Need = tuple[LimitHolder, Meter, int]
"""A holder of limits, one of its limits, and the amount that a call needs from it."""


class LimitReachedError(Exception):
    """A call was rejected by a limit, or because the ledger does not respond.

    `headers` contains the response headers with the remaining limits.
    """

    def __init__(self, status: int, code: str, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after
        self.should_retry = code not in (BUDGET_EXCEEDED, UNPRICED)
        self.headers: Mapping[str, str] = {}


class Reservation:
    """The amounts that a call has reserved, until `settle` or `close`.

    `close` is for calls without usage.
    """

    __slots__ = ("_charges", "_held", "_holders", "_keeper", "_prices", "_question", "_size", "currencies")

    def __init__(self, holders: Sequence[LimitHolder], keeper: QuotaClient) -> None:
        self._holders, self._keeper, self.currencies = tuple(holders), keeper, _currencies(holders)
        self._held: list[tuple[LimitHolder, Meter, Window, int]] = []
        self._charges: list[tuple[Usage, Mapping[str, Price | None]]] = []
        self._prices: Mapping[str, Price | None] = NO_PRICES
        self._question = self._size = 0

    @property
    def counts_usage(self) -> bool:
        """Whether the call's tokens or their cost count against any limit."""
        return bool(self.currencies) or any(
            meter in holder.limits.maximums for holder in self._holders for meter in TOKENS
        )

    async def enter(self, size: int) -> None:
        """Admit a call of `size` bytes and count it as a concurrent call; raise `LimitReachedError`."""
        await self._reserve(self._entry(size, self._holders))

    def enter_in_thread(self, size: int) -> None:
        """Do the same as `enter`, but in a thread without an event loop."""
        self._reserve_in_thread(self._entry(size, self._holders))

    async def join(self, holders: Sequence[LimitHolder]) -> None:
        """Do the same as `enter` for additional holders that the request names. Raise `LimitReachedError`."""
        self._holders = (*self._holders, *holders)
        self.currencies = _currencies(self._holders)
        await self._reserve(self._entry(self._size, holders))

    def beside(self) -> Reservation:
        """Return a reservation for an additional call on behalf of this one; only the call's usage is counted."""
        return Reservation(self._holders, self._keeper)

    async def reserve(
        self, question: int, answer: int, nanos: Mapping[str, int], unpriced: Mapping[str, str] = ALL_PRICED
    ) -> None:
        """Reserve the tokens of a request and of its longest possible answer, and their cost.

        `nanos` contains the cost by currency, in billionths. `unpriced` names, for each currency without a price, a
        model that may answer. Raise `LimitReachedError`.
        """
        self._question = question
        needs, usage = list[Need](), Usage(question, answer)
        for holder in self._holders:
            currency = holder.limits.currency
            money = nanos.get(currency, 0)
            if currency in unpriced:
                _check_priced(holder, unpriced[currency])
                money = max(money, counted_nanos(usage, None, holder.limits))
            needs += _build_needs(holder, dict.fromkeys(TOKENS, question + answer) | dict.fromkeys(MONEY, money))
        await self._reserve(needs)

    def expect(self, prices: Mapping[str, Price | None]) -> None:
        """Set the price of the answer's tokens for each of `currencies`."""
        self._prices = prices

    def settle(
        self,
        usage: Usage | None,
        reply: Answer | None = None,
        prices: Mapping[str, Price | None] = NO_PRICES,
        *,
        is_cut: bool = False,
    ) -> None:
        """End the call with the usage that the provider reported, or with an estimate from the reply so far.

        `prices` are the prices of the call's tokens for each of `currencies`.
        """
        self._prices = prices or self._prices
        if not self._held:
            return
        charges = self._charges
        if self.counts_usage:
            charges = [*charges, (estimate_usage(usage, self._question, reply, is_cut=is_cut), prices)]
        tokens = sum(total_tokens(usage) or 0 for usage, _ in charges)
        held, self._held, self._charges = self._held, [], []
        for holder, meter, window, amount in held:
            if meter in MONEY:
                used = sum(
                    counted_nanos(usage, call_prices.get(holder.limits.currency), holder.limits)
                    for usage, call_prices in charges
                )
            else:
                used = tokens if meter in TOKENS else 0
            self._keeper.settle(holder.id, meter, window, amount, used)

    def charge(self, usage: Usage, prices: Mapping[str, Price | None]) -> None:
        """Add the usage of a failed provider call, which will be settled together with the rest."""
        if self.counts_usage:
            self._charges.append((usage, prices))

    def close(self) -> None:
        self.settle(None)

    def headers(self) -> dict[str, str]:
        held = [
            (holder, meter, self._keeper.find_share(holder.id, meter, limit))
            for holder in self._holders
            for meter, limit in holder.limits.maximums.items()
        ]
        return build_headers(held, {currency for currency, price in self._prices.items() if price is None})

    def _entry(self, size: int, holders: Iterable[LimitHolder]) -> list[Need]:
        self._size = size
        amounts = {Meter.REQUESTS_PER_MINUTE: 1, Meter.BYTES_PER_DAY: size, Meter.IN_FLIGHT: 1}
        return [need for holder in holders for need in _build_needs(holder, amounts)]

    async def _reserve(self, needs: Sequence[Need]) -> None:
        steps = self._reserving(needs)
        with suppress(StopIteration):
            waiting = next(steps)
            while True:
                try:
                    window = await self._wait(*waiting)
                except BaseException as error:
                    steps.throw(error)
                    raise
                waiting = steps.send(window)

    def _reserve_in_thread(self, needs: Sequence[Need]) -> None:
        steps = self._reserving(needs)
        with suppress(StopIteration):
            waiting = next(steps)
            while True:
                try:
                    window = self._wait_in_thread(*waiting)
                except BaseException as error:
                    steps.throw(error)
                    raise
                waiting = steps.send(window)

    def _reserving(self, needs: Sequence[Need]) -> Generator[tuple[LimitHolder, Waiter], Window, None]:
        # Reserve either all needs or none. The call waits for all limits at the same time, so several limits take no
        # longer than one. This is a generator, because callers on the event loop and callers in threads wait in
        # different ways.
        begun = len(self._held)
        waiting: list[tuple[LimitHolder, Waiter]] = []
        try:
            for holder, meter, amount in needs:
                found = self._keeper.reserve(holder.id, meter, holder.limits.maximums[meter], amount)
                if isinstance(found, Waiter):
                    waiting.append((holder, found))
                else:
                    self._held.append((holder, meter, found, amount))
            while waiting:
                holder, waiter = waiting[0]
                window = yield holder, waiter
                self._held.append((holder, waiter.cell.meter, window, waiter.amount))
                del waiting[0]
        except BaseException as error:
            for _, waiter in waiting:
                self._keeper.withdraw(waiter)
            reserved, self._held = self._held[begun:], self._held[:begun]
            for holder, meter, window, amount in reserved:
                self._keeper.settle(holder.id, meter, window, amount, 0)
            # Build the headers only after all reserved amounts have been returned, so that they are up to date. If the
            # ledger does not respond, there are no headers.
            if isinstance(error, LimitReachedError) and error.status != 503:
                error.headers = self.headers()
            raise
        self._use_at_once()

    def _use_at_once(self) -> None:
        used = [entry for entry in self._held if entry[1] in COUNTED_ON_ENTRY]
        self._held = [entry for entry in self._held if entry[1] not in COUNTED_ON_ENTRY]
        for holder, meter, window, amount in used:
            self._keeper.settle(holder.id, meter, window, amount, amount)

    async def _wait(self, holder: LimitHolder, waiter: Waiter) -> Window:
        try:
            async with asyncio.timeout(self._keeper.wait_limit(waiter)):
                window = await asyncio.shield(asyncio.wrap_future(waiter.answer))
        except TimeoutError:
            window = self._give_up(waiter)
        return self._check(holder, waiter, window)

    def _wait_in_thread(self, holder: LimitHolder, waiter: Waiter) -> Window:
        try:
            window = waiter.answer.result(self._keeper.wait_limit(waiter))
        except TimeoutError:
            window = self._give_up(waiter)
        return self._check(holder, waiter, window)

    def _give_up(self, waiter: Waiter) -> Window | None:
        try:
            return self._keeper.give_up(waiter)
        except TimeoutError:
            raise LimitReachedError(503, UNAVAILABLE, NO_RESPONSE, RETRY_SECONDS) from None

    def _check(self, holder: LimitHolder, waiter: Waiter, window: Window | None) -> Window:
        if window is not None:
            return window
        meter, share, now = waiter.cell.meter, waiter.cell.share, datetime.now(UTC)
        ends_at = share.window.ends_at
        seconds = (ends_at - now).total_seconds() if ends_at else 1.0
        local = timezone.localtime(ends_at) if ends_at else None
        need = RefusedNeed(
            who=holder.title,
            meter=meter,
            limit=share.limit,
            left=share.remaining,
            need=waiter.amount,
            currency=holder.limits.currency,
        )
        sentence = refusal_sentence(need, local, now)
        code = RATE_EXCEEDED if meter in RATES else BUDGET_EXCEEDED
        raise LimitReachedError(429, code, sentence, seconds)


def limit_headers(error: LimitReachedError) -> dict[str, str]:
    retry_after = {"Retry-After": str(max(1, math.ceil(error.retry_after)))} if error.retry_after is not None else {}
    return {**error.headers, **retry_after, "x-should-retry": "true" if error.should_retry else "false"}


def _check_priced(holder: LimitHolder, model: str) -> None:
    if holder.limits.has_money and holder.limits.unpriced is UnpricedPolicy.REFUSE:
        sentence = translatable(UNPRICED_SENTENCE, who=holder.title, currency=holder.limits.currency, model=model)
        raise LimitReachedError(429, UNPRICED, sentence, None)


def _build_needs(holder: LimitHolder, amounts: Mapping[Meter, int]) -> list[Need]:
    return [(holder, meter, amount) for meter, amount in amounts.items() if meter in holder.limits.maximums]


def _currencies(holders: Iterable[LimitHolder]) -> tuple[str, ...]:
    limits = [holder.limits for holder in holders]
    return tuple(dict.fromkeys(limit.currency for limit in limits if any(meter in limit.maximums for meter in MONEY)))


keeper = owned(lambda: QuotaClient(RowLedger(), timezone.get_default_timezone, connections.close_all))


def make_reservation(holders: Sequence[LimitHolder]) -> Reservation | None:
    return Reservation(holders, keeper()) if holders else None
