"""The way to Redis: what is asked of it has an answer at once or not at all, and a server that is away is asked by
one thread alone.

Whoever asks while it is away is told so without trying. `beat` tries, again and again with a pause that grows to a
second, and says in the log what is wrong, and when it is over.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.utils import timezone

from capabilities.core.translatable import Translatable
from capabilities.runtime import owned
from routing_admin.platform.redis.faults import is_fault, sentence_of

if TYPE_CHECKING:
    import redis  # 10 MB, which an installation without Redis does not load

log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 1.0
"""How long a thread beside the calls waits for an answer; no call does."""
FIRST_PAUSE, MAX_PAUSE = 0.25, 1.0
"""Between two tries of a server that is away."""


class RedisUnavailableError(Exception):
    """Redis does not answer, or does not do what it is asked; the message says which."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Since when Redis is away, and why."""

    since: datetime
    sentence: Translatable


class RedisLink:
    """The server at `url`, none where that is empty; every key of ours begins with `prefix`."""

    def __init__(self, url: str, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.prefix, self._clock = prefix, clock
        self.lead_to(url)

    def lead_to(self, url: str) -> None:
        """Leads elsewhere, where nothing is known of yet: for tests, whose servers come and go."""
        self.url, self._up = url, False
        self._outage: Outage | None = None
        self._pause, self._again_at = FIRST_PAUSE, 0.0
        self._client = _client(url) if url else None

    @property
    def is_set(self) -> bool:
        """Whether there is a Redis at all."""
        return self._client is not None

    @property
    def is_up(self) -> bool:
        """Whether it answered when it was last asked."""
        return self._up

    @property
    def outage(self) -> Outage | None:
        """Why it is away; None while it answers, before it was first asked, and where there is none."""
        return self._outage

    def key(self, *words: str) -> str:
        """A key of this installation's."""
        return ":".join((self.prefix, *words))

    def ask(self, work: Callable[[redis.Redis], T]) -> T:
        """What `work` gets of the server. Raises `RedisUnavailableError`; at once where it was away a moment ago."""
        if self._client is None or not self._up:
            raise RedisUnavailableError(str(self._outage.sentence) if self._outage else "Redis was not asked yet.")
        return self._try(work, self._client)

    def beat(self) -> bool:
        """Whether the server takes writes; a server that is away is tried only once a pause is over."""
        if self._client is None or (not self._up and self._clock() < self._again_at):
            return False
        try:
            self._try(self._write, self._client)
        except RedisUnavailableError:
            return False
        if not self._up:
            self._come_back()
        return True

    def look(self) -> Outage | None:
        """Tries at once, whatever was found before; why it is away."""
        self._again_at = 0.0
        self.beat()
        return self._outage

    def close(self) -> None:
        """Lets the connections go."""
        if self._client is not None:
            self._client.close()

    def _write(self, client: redis.Redis) -> object:
        """A write, for a replica answers, too, and so does a server without memory."""
        return client.set(self.key("probe"), "1", px=1000)

    def _try(self, work: Callable[[redis.Redis], T], client: redis.Redis) -> T:
        try:
            return work(client)
        except Exception as error:
            if not is_fault(error):
                raise
            self._leave(error)
            raise RedisUnavailableError(str(error)) from None

    def _leave(self, error: Exception) -> None:
        sentence = sentence_of(error, self.url)
        self._pause = min(self._pause * 2, MAX_PAUSE) if not self._up else FIRST_PAUSE
        self._again_at = self._clock() + self._pause
        if self._outage is None or self._outage.sentence.template != sentence.template:  # not for each reason anew
            log.error("%s Until it answers, this process does without it.", sentence)
            self._outage = Outage(self._outage.since if self._outage else timezone.now(), sentence)
        self._up = False

    def _come_back(self) -> None:
        if self._outage is not None:
            log.warning("Redis answers again")
        self._up, self._outage, self._pause = True, None, FIRST_PAUSE


def _client(url: str) -> redis.Redis:
    """A client that never tries twice: what is asked of it may be no thing to do twice."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        protocol=2,
        decode_responses=True,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


def prefix_of(secret: str) -> str:
    """The beginning of every key of an installation: all its processes have its secret, and no other installation's."""
    return f"routing-admin:{hashlib.sha256(secret.encode()).hexdigest()[:12]}"


link = owned(lambda: RedisLink(settings.REDIS_URL, prefix_of(settings.SIGNING_SECRETS[-1])))
