"""How a request ended: the one decision that rows of the log keep and that every number of requests counts.

What a caller brought about counts against nothing: not as a failure of the installation, nor against a provider.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK
from routing_admin.core.fallback.cooldown import Cooldowns, LocalCooldowns
from routing_admin.core.fallback.errors import ALL_FAILED
from routing_admin.core.fallback.key_pools import KeyPools
from routing_admin.core.fallback.memory import Memory
from routing_admin.core.fallback.table import CALLERS_FAULTS, TABLE

NO_ROUTE = "no_route"
BROKEN = "internal_error"
UNAVAILABLE = "unavailable"
DRAINED = "server_draining"
OVERLOADED = "overloaded"
"""Outcomes that no candidate has: no route, an error of our own, a database away, a server that stops or is full."""


class RequestEnding(StrEnum):
    """How a request ended; the value is what the log's column and `status:` of its search say."""

    ANSWERED = "answered"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


FAILURES = frozenset(
    {
        *(fault.value for fault in Fault if fault not in CALLERS_FAULTS),
        *(row.code for fault, row in TABLE.items() if fault not in CALLERS_FAULTS),
        *(ALL_FAILED, ABORTED, BROKEN, NO_ROUTE, UNAVAILABLE, DRAINED, OVERLOADED),
    }
)
"""Outcomes of requests that should have had an answer; every other that is none was the caller's own doing."""
ENDINGS = {OK: RequestEnding.ANSWERED, CANCELLED: RequestEnding.CANCELLED} | dict.fromkeys(
    FAILURES, RequestEnding.FAILED
)


def ending_of(outcome: str) -> RequestEnding:
    """Return how a request with that outcome ended."""
    return ENDINGS.get(outcome, RequestEnding.REFUSED)


# What a run reads from outside itself: a clock, randomness, and what this process remembers of candidates.

# How many retries a provider may cost altogether, so that a provider that fails for everybody is not asked thrice.
#
# A purse per provider (faults reference §3): a retry costs 5 of 500, an answer gives back what its retries cost, or 1
# where it needed none. With an empty purse the next candidate is asked at once; the first call is always free.

FULL = 500
RETRY_COST = 5
PLAIN_REFUND = 1


@dataclass(slots=True)
class RetryBudget:
    """The purses of this process, safe between threads; only those that are not full are kept."""

    _spent: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, provider: str) -> bool:
        """Pay for one retry; False when the purse cannot."""
        with self._lock:
            spent = self._spent.get(provider, 0) + RETRY_COST
            if spent > FULL:
                return False
            self._spent[provider] = spent
            return True

    def refund(self, provider: str, retries: int) -> None:
        """An answer came after that many retries."""
        with self._lock:
            left = self._spent.get(provider, 0) - (retries * RETRY_COST or PLAIN_REFUND)
            if left > 0:
                self._spent[provider] = left
            else:
                self._spent.pop(provider, None)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run reads from outside: seconds of a monotonic clock, randomness in [0, 1), and what is remembered."""

    clock: Callable[[], float]
    random: Callable[[], float]
    cooldowns: Cooldowns
    memory: Memory
    pools: KeyPools
    budget: RetryBudget = field(default_factory=RetryBudget)


def local_context(clock: Callable[[], float], random: Callable[[], float], memory: Memory | None = None) -> RunContext:
    """A context that knows of no failure yet; `memory` is what is known of refusals, nothing by default."""
    cooldowns, pools = LocalCooldowns(clock, random), KeyPools(clock, LocalCooldowns(clock, random))
    return RunContext(clock, random, cooldowns, memory or Memory(clock), pools)


def process_context() -> RunContext:
    """The context of a real process: its clock, its randomness, nothing remembered yet."""
    return local_context(time.monotonic, random.random)
