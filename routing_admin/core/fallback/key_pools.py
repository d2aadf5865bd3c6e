"""Choose one of a provider's keys: the key that the conversation already uses, if possible, else the least used key.

Vendors cache prompts per account, so a conversation that always uses the same key costs less. After a refusal, a key
has a cooldown of its own (`key_effect`). After the cooldown, a single call probes the key.
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
"""Maximum number of conversations whose key is remembered. If there are more, the one idle longest is evicted."""
CONVERSATION_SECONDS = 3600.0
"""How long an idle conversation's key is remembered, in seconds; no vendor caches prompts for longer."""
REPUBLISH_SECONDS = 600.0
"""Seconds after which other processes are notified again of an ongoing conversation's key."""


@dataclass(frozen=True, slots=True)
class _ConversationKey:
    """The mark (digest) of a conversation's key, and when it was last used and last announced to other processes."""

    mark: str
    since: float
    news_at: float


def _ignore(provider: str, affinity: str) -> None:
    """No-op observer, the default for `watcher`."""


@dataclass(slots=True)
class KeyPools:
    """Thread-safe record of each key's uses in this process, and of failed keys; `clock` is in monotonic seconds.

    `health` contains the keys' cooldowns, with the mark of a key in place of a model. `watcher` is called when a
    conversation changes its key, and from time to time while a conversation continues.
    """

    clock: Callable[[], float]
    health: Cooldowns
    watcher: Callable[[str, str], object] = _ignore
    _uses: dict[tuple[str, str], int] = field(default_factory=dict)
    _conversations: OrderedDict[tuple[str, str], _ConversationKey] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, provider: str, keys: Sequence[PoolKey], affinity: str, refused: Collection[str]) -> PoolKey | None:
        """Return the key to use, or None if all usable keys were refused during this attempt.

        `refused` contains the marks of the refused keys.
        """
        with self._lock:
            # The first call of an attempt is always made. If all keys are cooling down, it uses the key that recovers
            # first, and prefers rate-limited keys to refused ones.
            usable = [key for key in keys if key.mark not in refused and self.look(provider, key) is None]
            if not usable and refused:
                return None
            key = (
                self._pick(provider, usable, affinity)
                if usable
                else min(keys, key=lambda key: self._rest(provider, key))
            )
            self._count(provider, keys, usable, key)
            if affinity:
                self._keep(provider, affinity, key)
            # Claim the single call that probes the key after its cooldown.
            self.health.enter(provider, key.mark)
            return key

    def _pick(self, provider: str, usable: Sequence[PoolKey], affinity: str) -> PoolKey:
        known = self._conversations.get((provider, affinity)) if affinity else None
        if known is not None and self.clock() - known.since <= CONVERSATION_SECONDS:
            own = next((key for key in usable if key.mark == known.mark), None)
            if own is not None:
                return own
        return min(usable, key=lambda key: self._uses.get((provider, key.mark), 0))

    def _rest(self, provider: str, key: PoolKey) -> tuple[bool, float]:
        cooling = self.look(provider, key)
        # Sort rate-limited keys before refused ones, and the keys in each group by the time left.
        return (cooling is not None and not _is_limited(cooling.failure), cooling.seconds if cooling else 0.0)

    def _count(self, provider: str, keys: Sequence[PoolKey], usable: Sequence[PoolKey], chosen: PoolKey) -> None:
        # New and recovered keys start with the lowest count of the others; otherwise they would receive all traffic at
        # first.
        lowest = min((self._uses.get((provider, key.mark), 0) for key in usable), default=0)
        for key in keys:
            key_id = (provider, key.mark)
            if key_id not in self._uses or key not in usable:
                self._uses[key_id] = max(self._uses.get(key_id, 0), lowest)
        self._uses[provider, chosen.mark] += 1

    def _keep(self, provider: str, affinity: str, key: PoolKey) -> None:
        now, before = self.clock(), self._conversations.get((provider, affinity))
        is_news = before is None or before.mark != key.mark or now - before.news_at > REPUBLISH_SECONDS
        news_at = now if before is None or is_news else before.news_at
        self._enter(provider, affinity, _ConversationKey(key.mark, now, news_at))
        if is_news:
            self.watcher(provider, affinity)

    def _enter(self, provider: str, affinity: str, conversation: _ConversationKey) -> None:
        self._conversations[provider, affinity] = conversation
        self._conversations.move_to_end((provider, affinity))
        if len(self._conversations) > MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)

    def find_mark(self, provider: str, affinity: str) -> str:
        """Return the mark of the key that a conversation uses, or an empty string if there is none."""
        found = self._conversations.get((provider, affinity))
        return found.mark if found is not None else ""

    def take_over(self, provider: str, affinity: str, mark: str, age: float) -> None:
        """Adopt the key that another process chose `age` seconds ago, without calling `watcher`."""
        if age < CONVERSATION_SECONDS:
            with self._lock:
                since = self.clock() - age
                self._enter(provider, affinity, _ConversationKey(mark, since, since))

    def look(self, provider: str, key: PoolKey) -> Cooling | None:
        return self.health.look(provider, key.mark)

    def forget(self, provider: str) -> None:
        self.health.forget(provider)

    def record(self, provider: str, key: PoolKey, failure: Failure | None) -> None:
        """Record a call's result.

        If `failure` is None, the call was answered, which clears the key's cooldown. A refusal of the key starts one.
        """
        effect = TABLE[failure.fault].key_effect if failure is not None else Effect.NONE
        if failure is None:
            self.health.record_success(provider, key.mark)
        elif effect is Effect.NONE:
            self.health.release_probe(provider, key.mark)
        else:
            # In `health`, keys take the place of models, so the scope MODEL means a single key.
            verdict = replace(Policy().verdict(failure), effect=effect, scope=Scope.MODEL)
            self.health.record_failure(provider, key.mark, failure, verdict)

    def release(self, provider: str, key: PoolKey | None) -> None:
        if key is not None:
            self.health.release_probe(provider, key.mark)

    def last_word(self, provider: str, keys: Sequence[PoolKey], failure: Failure) -> Failure:
        """Return the failure to report when no key is left, preferably that of a key refused only temporarily."""
        # A rate-limited key takes precedence: otherwise a single invalid key would make the request fail permanently
        # while other keys are only rate-limited. Among rate-limited keys, the one that recovers first determines the
        # wait.
        cooldowns = [cooling for key in keys if (cooling := self.look(provider, key)) is not None]
        limited = [cooling for cooling in cooldowns if _is_limited(cooling.failure)]
        if not limited:
            return failure
        first = min(limited, key=lambda cooling: cooling.seconds)
        named = first.failure.retry_after is not None
        return replace(first.failure, retry_after=first.seconds if named else None)


def _is_limited(failure: Failure) -> bool:
    """Return whether the key becomes usable again without action by an administrator."""
    return TABLE[failure.fault].key_effect not in (Effect.NONE, Effect.LONG)
