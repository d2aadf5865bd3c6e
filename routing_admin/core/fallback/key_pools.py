"""Which of a provider's keys is asked: the least used one, and for a conversation the one it had, while that is well.

A vendor keeps what it has read of a conversation by account, so that a conversation that stays with its key is cheaper.
Each key rests on its own after a refusal (`key_effect`), and one call tries it again afterwards (decision 20).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from capabilities.core.wire import Failure
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.cooldown import Cooldowns, Cooling
from routing_admin.core.fallback.policy import Policy
from routing_admin.core.fallback.table import TABLE, Effect, Scope

MAX_CONVERSATIONS = 10_000
"""Conversations whose key is known; the one that was silent longest makes room."""
CONVERSATION_SECONDS = 3600.0
"""How long a conversation that is silent keeps its key: no vendor keeps what it has read for longer."""
RETOLD_SECONDS = 600.0
"""How often others are told that it goes on."""


@dataclass(frozen=True, slots=True)
class _KeyInUse:
    """The key that a conversation has, when it last had a turn, and when others last had news of it."""

    mark: str
    since: float
    news_at: float


def _nobody(provider: str, affinity: str) -> None:
    """Is told of conversations where nobody wants to know."""


@dataclass(slots=True)
class KeyPools:
    """The keys' use and health in this process, safe between threads; `clock` gives seconds that only grow.

    `health` are cooldowns whose models are the keys' marks; `watcher` is told of a conversation that has another key
    now, or goes on with its own after a while.
    """

    clock: Callable[[], float]
    health: Cooldowns
    watcher: Callable[[str, str], object] = _nobody
    _uses: dict[tuple[str, str], int] = field(default_factory=dict)
    _conversations: OrderedDict[tuple[str, str], _KeyInUse] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(
        self, provider: str, keys: Sequence[PoolKey], affinity: str, turned_down: Collection[str]
    ) -> PoolKey | None:
        """The key to ask with; None where all that are well were turned down before.

        A first call is always made: where every key rests, with the one that wakes first, those that are only limited
        before those that were refused.
        """
        with self._lock:
            well = [key for key in keys if key.mark not in turned_down and self.look(provider, key) is None]
            if not well and turned_down:
                return None
            key = self._pick(provider, well, affinity) if well else min(keys, key=lambda key: self._rest(provider, key))
            self._count(provider, keys, well, key)
            if affinity:
                self._keep(provider, affinity, key)
            self.health.enter(provider, key.mark)
            return key

    def _pick(self, provider: str, well: Sequence[PoolKey], affinity: str) -> PoolKey:
        """The conversation's own key, else the least used."""
        known = self._conversations.get((provider, affinity)) if affinity else None
        if known is not None and self.clock() - known.since <= CONVERSATION_SECONDS:
            own = next((key for key in well if key.mark == known.mark), None)
            if own is not None:
                return own
        return min(well, key=lambda key: self._uses.get((provider, key.mark), 0))

    def _rest(self, provider: str, key: PoolKey) -> tuple[bool, float]:
        cooling = self.look(provider, key)
        return (cooling is not None and not _is_limited(cooling.failure), cooling.seconds if cooling else 0.0)

    def _count(self, provider: str, keys: Sequence[PoolKey], well: Sequence[PoolKey], chosen: PoolKey) -> None:
        """One more use. Who rests, or is new, keeps pace with the least used, and is not flooded when it comes."""
        least = min((self._uses.get((provider, key.mark), 0) for key in well), default=0)
        for key in keys:
            place = (provider, key.mark)
            if place not in self._uses or key not in well:
                self._uses[place] = max(self._uses.get(place, 0), least)
        self._uses[provider, chosen.mark] += 1

    def _keep(self, provider: str, affinity: str, key: PoolKey) -> None:
        now, before = self.clock(), self._conversations.get((provider, affinity))
        is_news = before is None or before.mark != key.mark or now - before.news_at > RETOLD_SECONDS
        news_at = now if before is None or is_news else before.news_at
        self._enter(provider, affinity, _KeyInUse(key.mark, now, news_at))
        if is_news:
            self.watcher(provider, affinity)

    def _enter(self, provider: str, affinity: str, conversation: _KeyInUse) -> None:
        self._conversations[provider, affinity] = conversation
        self._conversations.move_to_end((provider, affinity))
        if len(self._conversations) > MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)

    def mark_of(self, provider: str, affinity: str) -> str:
        """The key that a conversation has; empty where none is known."""
        found = self._conversations.get((provider, affinity))
        return found.mark if found is not None else ""

    def take_over(self, provider: str, affinity: str, mark: str, age: float) -> None:
        """A conversation that another process gave that key, so many seconds ago; nobody is told."""
        if age < CONVERSATION_SECONDS:
            with self._lock:
                since = self.clock() - age
                self._enter(provider, affinity, _KeyInUse(mark, since, since))

    def look(self, provider: str, key: PoolKey) -> Cooling | None:
        """Whether the key rests: for how long yet, and after what."""
        return self.health.look(provider, key.mark)

    def forget(self, provider: str) -> None:
        """Every key of the provider counts as well."""
        self.health.forget(provider)

    def record(self, provider: str, key: PoolKey, failure: Failure | None) -> None:
        """What came of a call with the key: an answer (None) makes it well, its own refusal lets it rest."""
        effect = TABLE[failure.fault].key_effect if failure is not None else Effect.NONE
        if failure is None:
            self.health.record_success(provider, key.mark)
        elif effect is Effect.NONE:
            self.health.release_probe(provider, key.mark)
        else:
            verdict = replace(Policy().verdict(failure), effect=effect, scope=Scope.MODEL)
            self.health.record_failure(provider, key.mark, failure, verdict)

    def release(self, provider: str, key: PoolKey | None) -> None:
        """The call ended without telling anything of its key."""
        if key is not None:
            self.health.release_probe(provider, key.mark)

    def last_word(self, provider: str, keys: Sequence[PoolKey], failure: Failure) -> Failure:
        """What counts when no key is left: the last key's failure, unless another key is only limited.

        A key that rests counts as the failure after which it does (CONTRACT §6), so that a dead key among limited ones
        loses no call: then it is the limit that ends first.
        """
        resting = [cooling for key in keys if (cooling := self.look(provider, key)) is not None]
        limited = [cooling for cooling in resting if _is_limited(cooling.failure)]
        if not limited:
            return failure
        first = min(limited, key=lambda cooling: cooling.seconds)
        named = first.failure.retry_after is not None
        return replace(first.failure, retry_after=first.seconds if named else None)


def _is_limited(failure: Failure) -> bool:
    """Whether a key is refused for a while only."""
    return TABLE[failure.fault].key_effect not in (Effect.NONE, Effect.LONG)
