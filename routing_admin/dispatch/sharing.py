"""What this process finds of candidates and keys, and what others find: one knowledge, where there is a Redis.

Calls read and write what is in memory; news of it are sent behind them, and what is heard is taken over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.context import RunContext
from routing_admin.core.fallback.cooldown import CooldownState, Key, LocalCooldowns
from routing_admin.core.fallback.key_pools import MAX_CONVERSATIONS, KeyPools
from routing_admin.platform.redis.news import Fields, News

CANDIDATES, KEYS, CONVERSATIONS = "candidates", "keys", "conversations"
MAX_AILMENTS = 2000
WELL = "null"


def share_health(run_context: RunContext, news: News) -> None:
    """Lets other processes know what this one finds, and this one what they find."""
    for topic, cooldowns in ((CANDIDATES, run_context.cooldowns), (KEYS, run_context.pools.health)):
        if isinstance(cooldowns, LocalCooldowns):
            SharedCooldowns(topic, cooldowns, news).begin()
    SharedConversations(run_context.pools, news).begin()


class SharedCooldowns:
    """The cooldowns of a topic: what was sent last of a candidate counts, wherever it was found."""

    def __init__(self, topic: str, cooldowns: LocalCooldowns, news: News) -> None:
        self._topic, self._cooldowns, self._news = topic, cooldowns, news

    def begin(self) -> None:
        """From now on."""
        self._cooldowns.watcher = self.tell
        self._news.follow(self._topic, MAX_AILMENTS, self.hear)

    def tell(self, key: Key) -> None:
        """Something about it has changed here."""
        self._news.tell(self._topic, json.dumps(key), lambda: self._render(key))

    def _render(self, key: Key) -> Fields:
        ailment = self._cooldowns.ailment_of(key)
        return {"key": json.dumps(key), "ailment": json.dumps(asdict(ailment)) if ailment else WELL}

    def hear(self, fields: Fields, age: float) -> None:
        """What a process found so many seconds ago, unless this one has found something since."""
        if self._news.is_waiting(self._topic, fields["key"]):
            return
        provider, model = json.loads(fields["key"])
        value = json.loads(fields["ailment"])
        self._cooldowns.take_over((provider, model), None if value is None else _ailment_in(value, age))


def _ailment_in(value: Mapping[str, Any], age: float) -> CooldownState:
    fields = value["failure"]
    typed = {"fault": Fault(fields["fault"]), "further_params": tuple(fields.get("further_params", ()))}
    failure = Failure(**fields | typed)
    seconds = None if value["seconds"] is None else value["seconds"] - age
    return CooldownState(value["failures"], value["rounds"], seconds, value["probe_seconds"] - age, failure)


class SharedConversations:
    """Which key a conversation has."""

    def __init__(self, pools: KeyPools, news: News) -> None:
        self._pools, self._news = pools, news

    def begin(self) -> None:
        """From now on."""
        self._pools.watcher = self.tell
        self._news.follow(CONVERSATIONS, MAX_CONVERSATIONS, self.hear)

    def tell(self, provider: str, affinity: str) -> None:
        """It has another key now."""
        subject = json.dumps([provider, affinity])
        self._news.tell(CONVERSATIONS, subject, lambda: self._render(provider, affinity))

    def _render(self, provider: str, affinity: str) -> Fields:
        return {"provider": provider, "affinity": affinity, "mark": self._pools.mark_of(provider, affinity)}

    def hear(self, fields: Fields, age: float) -> None:
        """What a process chose so many seconds ago."""
        if not self._news.is_own(fields):
            self._pools.take_over(fields["provider"], fields["affinity"], fields["mark"], age)
