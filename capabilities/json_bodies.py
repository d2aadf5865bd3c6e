"""Parse the JSON of requests. Its size is limited before it is parsed, and no step blocks other threads for long."""

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
"""Maximum size of JSON that is parsed in one step, which takes some ten milliseconds."""
LARGE_BYTES = 128 * 1024
"""Size from which JSON is scanned and parsed in a thread, unless it has few values."""
QUICK_BYTES, QUICK_VALUES = 2 * 1024 * 1024, 2_000
"""Maximum size and number of values of JSON that is parsed faster than a thread is started and joined."""
TOO_LARGE = "json_too_large"


class JsonTooLargeError(ValueError):
    """The JSON exceeds a limit. `sentence` names the setting."""

    status, code = 413, TOO_LARGE

    def __init__(self, sentence: Translatable) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def load_json(data: bytes | bytearray, *, counts_text: bool = False) -> Any:
    """Parse JSON. Raise JsonTooLargeError, or ValueError for invalid JSON.

    Set `counts_text` for values that are sent on as JSON. Then the limit on JSON bytes includes long strings, except
    base64.
    """
    if len(data) <= settings.MAX_JSON_VALUES:  # A value has at least one byte.
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
        # The error's line and column would refer to a piece and not to the complete JSON.
        raise ValueError(error.msg) from None


def extract_texts(data: bytes | bytearray) -> tuple[bytes, dict[str, str]]:
    """Return JSON that may be parsed in one step, and the extracted long strings by their placeholders.

    Raise the same errors as `load_json`.
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
    """Return the scan of JSON that will be parsed. Raise JsonTooLargeError if it exceeds a limit."""
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


# Size limits of request bodies by path. The server and all views use this table.

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The body limit of some paths: the size of `uploads` maximum uploads, but at least `least` bytes.

    `around` is the number of bytes that a form may have around its files. `margin` is for views that read the body
    themselves: the server accepts this many more bytes, so that the view can return its own error. `in_memory` means
    that the complete body is held in memory until the response is sent.
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
"""The first matching row is used. The rows are: one file in a form; one file without a form; a call to the agents' API;
a call to a model, with room for two maximum uploads as base64; a page, with ten files at once."""


def body_limit(path: str) -> int:
    return _row(path).size()


def received_limit(path: str) -> int:
    """Return the maximum number of body bytes that the server receives at this path."""
    row = _row(path)
    return row.size() + row.margin


def is_buffered(path: str) -> bool:
    return _row(path).in_memory


@lru_cache(maxsize=256)
def _row(path: str) -> BodyLimit:
    return next(row for row in LIMITS if row.addresses.fullmatch(path))
