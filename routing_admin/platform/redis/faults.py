"""Messages for Redis errors, with what to do, and without the password."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from capabilities.core.translatable import Translatable, translatable

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
"""Messages by the first word of Redis's error."""
SILENT = translatable("Redis at %(place)s did not respond in time.")
AWAY = translatable("Redis at %(place)s cannot be reached: %(reason)s.")
REFUSED = translatable("Redis at %(place)s returned an error: %(reason)s")


def place_of(url: str) -> str:
    """Return host and port, or the socket's path: the part of the URL without the password."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


def is_fault(error: Exception) -> bool:
    """Return whether an error is an outage or rejection by Redis rather than a bug in our call."""
    from redis import RedisError

    return isinstance(error, RedisError | OSError)


def sentence_of(error: Exception, url: str) -> Translatable:
    import redis

    address, text = place_of(url), str(error)
    if isinstance(error, redis.AuthenticationError) and "called without any password" in text:
        return translatable(REFUSALS["WRONGPASS"])
    code = _refusal_in(error, text)
    if code:
        return translatable(REFUSALS[code])
    if isinstance(error, redis.TimeoutError | TimeoutError):
        return translatable(SILENT, place=address)
    if isinstance(error, redis.ConnectionError | OSError):
        # The client's own message repeats the URL.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        reason = getattr(cause, "strerror", None) or text.rstrip(".")
        return translatable(AWAY, place=address, reason=str(reason))
    return translatable(REFUSED, place=address, reason=text)


def _refusal_in(error: Exception, text: str) -> str:
    import redis

    # redis-py drops the error's first word if it has a class for it.
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
