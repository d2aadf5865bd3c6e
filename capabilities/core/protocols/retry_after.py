"""How long a provider asks to be left alone, out of its headers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

MAX_SECONDS = 86_400.0
"""A wait beyond a day is taken as nonsense."""
_NUMBER = re.compile(r"\s*\d{1,15}(\.\d{0,15})?\s*", re.ASCII)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds in 0 … a day; None when no time is named, or a negative, endless, absurd or past one.

    `retry-after-ms` comes before `Retry-After` in seconds or as an HTTP date, which is read against the response's
    own `Date` and only without one against `now` (seconds since the epoch), since clocks differ.
    """
    named = {name.lower(): value for name, value in headers.items()}
    exact = seconds(named.get("retry-after-ms"))
    if exact is not None:
        return check_wait(exact / 1000)
    value = named.get("retry-after")
    plain = seconds(value)
    if plain is not None:
        return check_wait(plain)
    until, since = http_date(value), http_date(named.get("date"))
    since = now if since is None else since
    return None if until is None or since is None or until <= since else check_wait(until - since)


def names_nonsense(headers: Mapping[str, str], now: float | None = None) -> bool:
    """Whether a wait is named that `retry_after` cannot read: negative, endless, absurd, past, or no time at all."""
    named = any(name.lower() in ("retry-after", "retry-after-ms") and value.strip() for name, value in headers.items())
    return named and retry_after(headers, now) is None


def seconds(value: str | None) -> float | None:
    """A plain number of seconds; None for anything else, signs and exponents included."""
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None


def check_wait(value: float) -> float | None:
    """The wait where it is one: finite, not negative, at most a day."""
    return value if math.isfinite(value) and 0 <= value <= MAX_SECONDS else None


def http_date(value: str | None) -> float | None:
    """An HTTP date as seconds since the epoch; None when it is none."""
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None
