"""Connection to Redis: during an outage, calls fail immediately, and only one thread retries.

While Redis is unavailable, `ask` fails without trying, and `beat` retries with a delay that grows to a second. The
cause and the end of the outage are logged. Log messages say what to do, and never contain the password.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from capabilities.core.translatable import Translatable, translatable
from capabilities.runtime import owned

if TYPE_CHECKING:
    import redis  # The package uses 10 MB of memory, so it is imported only if Redis is used.


REFUSALS: Mapping[str, str] = {
    "NOAUTH": translatable("Redis requires a password. Add it to REDIS_URL: redis://:password@host:port."),
    "WRONGPASS": translatable("Redis rejects the user name or password in REDIS_URL. Correct them there."),
    "NOPERM": translatable(
        "The user in REDIS_URL lacks permission for the required commands. Grant it +@all on ~routing-admin:*."
    ),
    "READONLY": translatable("REDIS_URL points to a read-only replica. Set it to the primary server."),
    "OOM": translatable(
        "Redis is out of memory. Raise its limit (maxmemory), or let it evict old keys (maxmemory-policy)."
    ),
    "MISCONF": translatable("Redis accepts no writes because it cannot save to its disk. Its log names the cause."),
    "LOADING": translatable("Redis is starting and still loading its data."),
    "MASTERDOWN": translatable(
        "REDIS_URL points to a replica that has lost its primary server. Set it to the primary server."
    ),
    "MOVED": translatable("REDIS_URL points to a Redis cluster. Use a single server, with or without replicas."),
    "CLUSTERDOWN": translatable("REDIS_URL points to a Redis cluster. Use a single server, with or without replicas."),
}
"""Maps the first word of a Redis error to a message for operators."""
NO_RESPONSE = translatable("Redis at %(place)s did not respond in time.")
UNREACHABLE = translatable("Redis at %(place)s cannot be reached: %(reason)s.")
REFUSED = translatable("Redis at %(place)s returned an error: %(reason)s")


def url_location(url: str) -> str:
    """Return the host and port, or the socket's path, so that no password is shown."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


def is_fault(error: Exception) -> bool:
    """Return whether the error means that Redis is unavailable or rejected a command; other errors are our own bugs."""
    from redis import RedisError

    return isinstance(error, RedisError | OSError)


def explain_error(error: Exception, url: str) -> Translatable:
    import redis

    address, text = url_location(url), str(error)
    if isinstance(error, redis.AuthenticationError) and "called without any password" in text:
        return translatable(REFUSALS["WRONGPASS"])
    code = _refusal_in(error, text)
    if code:
        return translatable(REFUSALS[code])
    if isinstance(error, redis.TimeoutError | TimeoutError):
        return translatable(NO_RESPONSE, place=address)
    if isinstance(error, redis.ConnectionError | OSError):
        # Do not use the Redis client's own message, because it would repeat the URL.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        reason = getattr(cause, "strerror", None) or text.rstrip(".")
        return translatable(UNREACHABLE, place=address, reason=str(reason))
    return translatable(REFUSED, place=address, reason=text)


def _refusal_in(error: Exception, text: str) -> str:
    import redis

    # redis-py drops the first word of an error if it has its own exception class for the error.
    by_class: tuple[tuple[type[Exception], str], ...] = (
        (redis.exceptions.ReadOnlyError, "READONLY"),
        (redis.exceptions.OutOfMemoryError, "OOM"),
        (redis.exceptions.NoPermissionError, "NOPERM"),
        (redis.exceptions.MasterDownError, "MASTERDOWN"),
        (redis.exceptions.BusyLoadingError, "LOADING"),
        (redis.exceptions.ClusterDownError, "CLUSTERDOWN"),
        (redis.exceptions.MovedError, "MOVED"),
    )
    for kind, code in by_class:
        if isinstance(error, kind):
            return code
    if isinstance(error, redis.AuthenticationError):
        return "WRONGPASS" if "invalid" in text else "NOAUTH"
    return next((code for code in REFUSALS if text.startswith(code)), "")


log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 1.0
"""Timeout in seconds for calls to Redis, which only background threads make; requests never wait for Redis."""
FIRST_PAUSE, MAX_PAUSE = 0.25, 1.0
"""Minimum and maximum number of seconds between retries during an outage."""


class RedisUnavailableError(Exception):
    """Redis does not respond or rejects a command; the message says which."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Start and cause of a Redis outage."""

    since: datetime
    sentence: Translatable


class RedisLink:
    """Connection to the Redis server at `url`, if one is set; every key of the installation starts with `prefix`."""

    def __init__(self, url: str, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.prefix, self._clock = prefix, clock
        self.set_url(url)

    def set_url(self, url: str) -> None:
        """Switch to another Redis server; only tests use this."""
        self.url, self._up = url, False
        self._outage: Outage | None = None
        self._pause, self._again_at = FIRST_PAUSE, 0.0
        self._client = _client(url) if url else None

    @property
    def is_set(self) -> bool:
        return self._client is not None

    @property
    def is_up(self) -> bool:
        return self._up

    @property
    def outage(self) -> Outage | None:
        """Return the current outage. It is None if Redis works, has not been called yet, or is not used."""
        return self._outage

    def key(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    def ask(self, work: Callable[[redis.Redis], T]) -> T:
        """Return the result of `work`, or raise `RedisUnavailableError`; during an outage, raise it immediately."""
        if self._client is None or not self._up:
            raise RedisUnavailableError(str(self._outage.sentence) if self._outage else "Redis was not asked yet.")
        return self._try(work, self._client)

    def beat(self) -> bool:
        """Return whether the server accepts writes; during an outage, ask it again only after a delay."""
        if self._client is None or (not self._up and self._clock() < self._again_at):
            return False
        try:
            self._try(self._write, self._client)
        except RedisUnavailableError:
            return False
        if not self._up:
            self._record_recovery()
        return True

    def look(self) -> Outage | None:
        """Check the server immediately, and return the current outage, or None if there is none."""
        self._again_at = 0.0
        self.beat()
        return self._outage

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _write(self, client: redis.Redis) -> object:
        # A PING is not enough, because a replica or a server that is out of memory would also answer it.
        return client.set(self.key("probe"), "1", px=1000)

    def _try(self, work: Callable[[redis.Redis], T], client: redis.Redis) -> T:
        try:
            return work(client)
        except Exception as error:
            if not is_fault(error):
                raise
            self._record_outage(error)
            raise RedisUnavailableError(str(error)) from None

    def _record_outage(self, error: Exception) -> None:
        sentence = explain_error(error, self.url)
        self._pause = min(self._pause * 2, MAX_PAUSE) if not self._up else FIRST_PAUSE
        self._again_at = self._clock() + self._pause
        # Log the same cause only once per outage. Compare message templates, because the values inserted into them
        # vary.
        if self._outage is None or self._outage.sentence.template != sentence.template:
            log.error("%s Until it answers, this process does without it.", sentence)
            self._outage = Outage(self._outage.since if self._outage else timezone.now(), sentence)
        self._up = False

    def _record_recovery(self) -> None:
        if self._outage is not None:
            log.warning("Redis answers again")
        self._up, self._outage, self._pause = True, None, FIRST_PAUSE


def _client(url: str) -> redis.Redis:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        protocol=2,
        decode_responses=True,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        # The Redis client must not retry, because commands may not be safe to repeat.
        retry=Retry(NoBackoff(), 0),
    )


def key_prefix(secret: str) -> str:
    # Derive the prefix from a secret that all processes of an installation share and that no other installation has.
    return f"routing-admin:{hashlib.sha256(secret.encode()).hexdigest()[:12]}"


link = owned(lambda: RedisLink(settings.REDIS_URL, key_prefix(settings.SIGNING_SECRETS[-1])))
