"""State that all runs in a process share: clock, randomness, cooldowns, keys and retry budgets."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from routing_admin.core.fallback.cooldown import Cooldowns, LocalCooldowns
from routing_admin.core.fallback.key_pools import KeyPools
from routing_admin.core.fallback.memory import RefusalMemory

# Each provider has a retry budget of 500 points. A retry costs 5 points. An answer refunds the cost of its retries, or
# 1 point if there were none. While the budget is exhausted, requests go to the next candidate instead of retrying. The
# first call to a candidate costs nothing.

FULL = 500
RETRY_COST = 5
PLAIN_REFUND = 1


@dataclass(slots=True)
class RetryBudget:
    """Retry budgets of all providers in this process, thread-safe.

    Only providers that have used part of their budget are stored.
    """

    _spent: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, provider: str) -> bool:
        """Take the cost of one retry from the provider's budget; return False if the budget is exhausted."""
        with self._lock:
            spent = self._spent.get(provider, 0) + RETRY_COST
            if spent > FULL:
                return False
            self._spent[provider] = spent
            return True

    def refund(self, provider: str, retries: int) -> None:
        with self._lock:
            left = self._spent.get(provider, 0) - (retries * RETRY_COST or PLAIN_REFUND)
            if left > 0:
                self._spent[provider] = left
            else:
                self._spent.pop(provider, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Everything that a run needs from outside; `clock` is in monotonic seconds, `random` returns values in [0, 1)."""

    clock: Callable[[], float]
    random: Callable[[], float]
    cooldowns: Cooldowns
    memory: RefusalMemory
    pools: KeyPools
    budget: RetryBudget = field(default_factory=RetryBudget)


def local_context(
    clock: Callable[[], float], random: Callable[[], float], memory: RefusalMemory | None = None
) -> RunContext:
    """Return a context without known failures; `memory` contains known parameter refusals and is empty by default."""
    cooldowns, pools = LocalCooldowns(clock, random), KeyPools(clock, LocalCooldowns(clock, random))
    return RunContext(
        clock=clock, random=random, cooldowns=cooldowns, memory=memory or RefusalMemory(clock), pools=pools
    )


def process_context() -> RunContext:
    return local_context(time.monotonic, random.random)
