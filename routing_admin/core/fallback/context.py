"""What a run reads from outside itself: a clock, randomness, and what this process remembers of candidates."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from routing_admin.core.fallback.cooldown import Cooldowns, LocalCooldowns
from routing_admin.core.fallback.key_pools import KeyPools
from routing_admin.core.fallback.memory import Memory

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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    return RunContext(clock=clock, random=random, cooldowns=cooldowns, memory=memory or Memory(clock), pools=pools)


def process_context() -> RunContext:
    """The context of a real process: its clock, its randomness, nothing remembered yet."""
    return local_context(time.monotonic, random.random)
