"""What a run reads from outside itself: a clock, randomness, and what this process remembers of candidates."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from routing_admin.core.fallback.budget import RetryBudget
from routing_admin.core.fallback.cooldown import Cooldowns, LocalCooldowns
from routing_admin.core.fallback.key_pools import KeyPools
from routing_admin.core.fallback.memory import Memory


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
