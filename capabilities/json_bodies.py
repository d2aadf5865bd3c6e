"""Parse the JSON of requests. Its size is limited before parsing, and no step blocks other threads for long."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings

from capabilities.core.json_codec import (
    JsonScan,
    TooManyValuesError,
    TooMuchTextError,
    extract_strings,
    restore_strings,
    scan_json,
)
from capabilities.core.translatable import Translatable, translatable

AT_ONCE_BYTES = 4 * 1024 * 1024
"""Maximum size of JSON that is parsed in one step, which takes about ten milliseconds."""
LARGE_BYTES = 128 * 1024
"""JSON larger than this is scanned and parsed in a separate thread, unless it has few values."""
QUICK_BYTES, QUICK_VALUES = 2 * 1024 * 1024, 2_000
"""JSON of at most this size, with at most this number of values, is parsed faster than a thread could be started and
joined."""
TOO_LARGE = "json_too_large"


class JsonTooLargeError(ValueError):
    """The JSON exceeds a limit. `sentence` names the setting that raises the limit."""

    status, code = 413, TOO_LARGE

    def __init__(self, sentence: Translatable) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def load_json(data: bytes | bytearray, *, counts_text: bool = False) -> Any:
    """Parse JSON. Raise JsonTooLargeError, or ValueError for invalid JSON.

    With `counts_text`, long strings other than base64 count towards the limit on JSON bytes. Set this if the values
    will be sent on as JSON.
    """
    if len(data) <= settings.MAX_JSON_VALUES:  # Each value takes at least one byte.
        return orjson.loads(data)
    scan = check_json(data)
    if len(data) <= min(AT_ONCE_BYTES, settings.MAX_JSON_BYTES) or not scan.long_strings:
        return orjson.loads(data)
    short = len(data) - _long_bytes(scan)
    try:
        # Long strings are decoded piece by piece, so that no step holds the interpreter lock for long.
        skeleton, texts = _extract(data, scan, settings.MAX_JSON_BYTES - short if counts_text else math.inf)
        return restore_strings(orjson.loads(skeleton), texts)
    except orjson.JSONDecodeError as error:
        # The line and column in the error refer to a piece, not to the complete JSON.
        raise ValueError(error.msg) from None


def extract_texts(data: bytes | bytearray) -> tuple[bytes, dict[str, str]]:
    """Return the JSON with placeholders for its long strings, and a map from placeholders to strings.

    The returned JSON may be parsed in one step. Raise the same errors as `load_json`.
    """
    return _extract(data, check_json(data), math.inf)


def _extract(data: bytes | bytearray, scan: JsonScan, max_text: float) -> tuple[bytes, dict[str, str]]:
    try:
        return extract_strings(data, scan, orjson.loads, secrets.token_hex(), max_text)
    except TooMuchTextError:
        raise _too_many_bytes() from None


def _long_bytes(scan: JsonScan) -> int:
    return sum(stop - start for start, stop in scan.long_strings)


def check_json(data: bytes | bytearray) -> JsonScan:
    """Scan JSON before it is parsed, and return what the scan counted. Raise `JsonTooLargeError` if it is too large."""
    try:
        scan = scan_json(data, settings.MAX_JSON_VALUES)
    except TooManyValuesError:
        raise _too_many_values() from None
    if len(data) - _long_bytes(scan) > settings.MAX_JSON_BYTES:
        raise _too_many_bytes()
    return scan


def check_inner_json(texts: Sequence[str]) -> None:
    """Raise JsonTooLargeError if strings that contain JSON have too many values in total."""
    remaining = settings.MAX_JSON_VALUES
    if sum(map(len, texts)) <= remaining:
        return
    try:
        for text in texts:
            remaining -= scan_json(text.encode("utf-8", "replace"), remaining).values
    except TooManyValuesError:
        raise _too_many_values() from None


def _too_many_values() -> JsonTooLargeError:
    return JsonTooLargeError(
        translatable(
            "The body has more than %(limit)s JSON values. Send less in one request, or raise %(setting)s.",
            limit=settings.MAX_JSON_VALUES,
            setting="ROUTING_ADMIN_MAX_JSON_VALUES",
        )
    )


def is_quick(data: bytes | bytearray) -> bool:
    """Return whether JSON can be parsed and processed on an event loop without blocking other calls for long."""
    if len(data) <= LARGE_BYTES or len(data) > QUICK_BYTES:
        return len(data) <= LARGE_BYTES
    try:
        scan_json(data, QUICK_VALUES)
    except TooManyValuesError:
        return False
    return True


def _too_many_bytes() -> JsonTooLargeError:
    return JsonTooLargeError(
        translatable(
            "The body has more than %(limit)s bytes of JSON beside its files. Send less in one request, "
            "or raise %(setting)s.",
            limit=settings.MAX_JSON_BYTES,
            setting="ROUTING_ADMIN_MAX_JSON_BYTES",
        )
    )


def nests_too_deeply(value: Any) -> bool:
    # Visit containers level by level, because recursion could overflow the stack.
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(settings.MAX_JSON_DEPTH):
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def too_deep() -> Translatable:
    return translatable(
        "The body is nested deeper than %(levels)s levels (%(setting)s).",
        levels=settings.MAX_JSON_DEPTH,
        setting="ROUTING_ADMIN_MAX_JSON_DEPTH",
    )


# Size limits of request bodies for each path. The server and all views use this table.

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The size limit of request bodies at some paths: `uploads` files of maximum size, but at least `least` bytes.

    `around` is added for everything in a form except its files. `margin` is for views that read the body themselves:
    the server accepts this many additional bytes, so that the view can return its own error. `in_memory` means that the
    complete body is held in memory until the response is sent.
    """

    addresses: re.Pattern[str]
    uploads: int = 0
    least: int = 0
    around: int = 0
    margin: int = 0
    in_memory: bool = False

    def size(self) -> int:
        return max(self.least, self.uploads * upload_limit()) + self.around


def upload_limit() -> int:
    """Return the maximum size of an uploaded file in bytes (`ROUTING_ADMIN_MAX_UPLOAD_BYTES`)."""
    return int(settings.MAX_UPLOAD_BYTES)


LIMITS = (
    BodyLimit(re.compile(r"/(api/v1/artifacts|v1/files)/?"), uploads=1, around=MIB),
    BodyLimit(re.compile(r"/api/v1/uploads/[^/]+/?"), uploads=1, margin=MIB),
    BodyLimit(re.compile(r"/api/v1(/.*)?", re.S), least=32 * MIB, margin=MIB, in_memory=True),
    BodyLimit(re.compile(r"/(v1|v1beta|mcp)(/.*)?", re.S), uploads=3, least=64 * MIB, margin=MIB, in_memory=True),
    BodyLimit(re.compile(r".*", re.S), uploads=10, around=MIB),
)
"""The first matching row applies. The rows are for: one file in a form, one file without a form, calls to the agents'
API, calls to models (large enough for two maximum-size uploads as base64), and pages (ten files at once)."""


def body_limit(path: str) -> int:
    return _row(path).size()


def received_limit(path: str) -> int:
    """Return how many bytes of a body the server accepts at this path, including the margin."""
    row = _row(path)
    return row.size() + row.margin


def is_buffered(path: str) -> bool:
    return _row(path).in_memory


@lru_cache(maxsize=256)
def _row(path: str) -> BodyLimit:
    return next(row for row in LIMITS if row.addresses.fullmatch(path))
