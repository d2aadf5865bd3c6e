"""Parse error bodies in the formats of all providers, and the wait time that a response requests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from capabilities.core.json_codec import read_repaired_json
from capabilities.core.providers.redaction import READ_CHARACTERS
from capabilities.core.translatable import translatable

# A requested wait time of more than a day is implausible and ignored.
MAX_SECONDS = 86_400.0
_NUMBER = re.compile(r"\s*\d{1,15}(\.\d{0,15})?\s*", re.ASCII)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the requested wait time in seconds, or None if it is missing, negative, in the past or more than a day.

    `retry-after-ms` takes precedence over `Retry-After`, which is in seconds or an HTTP date. A date is compared with
    the response's own `Date`, because clocks differ, or else with `now` (Unix seconds).
    """
    lower_headers = {name.lower(): value for name, value in headers.items()}
    exact = seconds(lower_headers.get("retry-after-ms"))
    if exact is not None:
        return check_wait(exact / 1000)
    value = lower_headers.get("retry-after")
    seconds_to_wait = seconds(value)
    if seconds_to_wait is not None:
        return check_wait(seconds_to_wait)
    retry_at, since = http_date(value), http_date(lower_headers.get("date"))
    since = now if since is None else since
    return None if retry_at is None or since is None or retry_at <= since else check_wait(retry_at - since)


def has_invalid_retry_after(headers: Mapping[str, str], now: float | None = None) -> bool:
    """Return whether the headers request a wait time that `retry_after` does not accept."""
    has_value = any(
        name.lower() in ("retry-after", "retry-after-ms") and value.strip() for name, value in headers.items()
    )
    return has_value and retry_after(headers, now) is None


def seconds(value: str | None) -> float | None:
    """Return the number of seconds in a header value, or None if it is not a plain number without sign or exponent."""
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None


def check_wait(value: float) -> float | None:
    """Return the wait time in seconds if it is finite, not negative and at most a day, otherwise None."""
    return value if math.isfinite(value) and 0 <= value <= MAX_SECONDS else None


def http_date(value: str | None) -> float | None:
    """Return an HTTP date in Unix seconds, or None if the value is not a date."""
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None


PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[a-z_]+)?\Z")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s\Z")
MAX_REASONS = 20
_BASE_RESP = "base_resp"  # With HTTP status 200, MiniMax puts the real status in this field.


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """A provider's error in a provider-independent form.

    `search_text` is the text by which the error is classified. `status` is the HTTP status stated in the body, `code`
    the provider's most specific code, and `param` the parameter that the error names. `retry_after` is in seconds.
    """

    message: str = ""
    code: str | None = None
    kind: str | None = None
    param: str | None = None
    status: int | None = None
    reasons: tuple[str, ...] = ()
    retry_after: float | None = None

    @property
    def search_text(self) -> str:
        # Put each text on its own line, because some patterns match an entire line. Truncate it to the length that is
        # searched.
        texts = (self.code, self.kind, *self.reasons[:MAX_REASONS], self.message)
        return "\n".join(text[:READ_CHARACTERS] for text in texts if text)


def parse_error(body: bytes) -> ErrorBody:
    """Return the error described by a body: JSON in any known format, a web page's title, or else the text itself."""
    text = body[:1_000_000].decode("utf-8", "replace").strip()
    try:
        value = read_repaired_json(text)
    except (ValueError, RecursionError):
        title = _TITLE.search(text)
        page = translatable("the body is a web page") if text[:1] == "<" else text
        return ErrorBody(message=title[1].strip() if title else page)
    return read_error(value)


def read_error(value: Any) -> ErrorBody:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = value[0]  # Gemini sometimes wraps an error in a list with one element.
    if not isinstance(value, Mapping):
        return ErrorBody(message=value if isinstance(value, str) else "")
    if isinstance(value.get(_BASE_RESP), Mapping):
        return _minimax(value[_BASE_RESP])
    inner = value.get("error")
    if isinstance(inner, str):
        return ErrorBody(message=_text(value.get("message")) or inner, code=inner)
    if isinstance(inner, Mapping):
        return _openai_like(inner)
    if "detail" in value:
        return _fastapi(value["detail"])
    return _openai_like(value)


def _openai_like(error: Mapping[str, Any]) -> ErrorBody:
    code = error.get("code", error.get("error_code"))
    details = [item for item in _list(error.get("details")) if isinstance(item, Mapping)]
    extra = error.get("metadata")
    raw = _text(extra.get("raw")) if isinstance(extra, Mapping) else ""
    message = _text(error.get("message")) or _text(error.get("msg")) or _text(error.get("error_msg"))
    inner = error.get("details")
    reasons = (_text(inner.get("error_code")),) if isinstance(inner, Mapping) else tuple(_reasons(details))
    return ErrorBody(
        message=f"{message}: {raw}" if raw and raw not in message else message,
        code=str(code) if isinstance(code, str | int) else None,
        kind=_text(error.get("type")) or _text(error.get("status")) or None,
        param=_text(error.get("param")) or None,
        status=_status(code),
        reasons=tuple(reason for reason in reasons if reason),
        retry_after=_delay(details),
    )


def _minimax(base: Mapping[str, Any]) -> ErrorBody:
    code = base.get("status_code")
    statuses = {1000: 500, 1001: 504, 1002: 429, 1004: 401, 1008: 402, 1013: 500, 2013: 400}
    kinds = {1026: "content_filter", 1027: "content_filter", 1039: "context_length_exceeded"}
    status = statuses.get(code, 400 if code in kinds else 500) if isinstance(code, int) else 500
    return ErrorBody(
        message=_text(base.get("status_msg")),
        code=str(code),
        kind=kinds.get(code) if isinstance(code, int) else None,
        status=status,
    )


def _fastapi(detail: Any) -> ErrorBody:
    if isinstance(detail, str):
        return ErrorBody(message=detail)
    if isinstance(detail, Mapping):
        return _openai_like(detail)
    items = [item for item in _list(detail) if isinstance(item, Mapping)]
    first = next((item for item in items if item.get("type") == "extra_forbidden"), items[0] if items else {})
    location = [str(step) for step in _list(first.get("loc")) if step != "body"]
    message = f"{'.'.join(location)}: {_text(first.get('msg'))}" if location else _text(first.get("msg"))
    return ErrorBody(
        message=message, kind=_text(first.get("type")) or None, param=location[0] if len(location) == 1 else None
    )


def _reasons(details: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in details:
        # In Gemini's errors, a detail may have a reason and the ids of the exceeded quotas.
        yield _text(item.get("reason"))
        for violation in _list(item.get("violations")):
            if isinstance(violation, Mapping):
                yield _text(violation.get("quotaId"))


def _delay(details: list[Mapping[str, Any]]) -> float | None:
    for item in details:
        # Gemini's `RetryInfo` contains a delay such as "34s".
        match = _DELAY.match(_text(item.get("retryDelay")))
        if match:
            return check_wait(float(match[1]))
    return None


def _status(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
