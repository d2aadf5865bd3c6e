"""A request's body as a JSON object, refused with the place where it is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from capabilities.body_limits import MAX_DEPTH, body_limit
from capabilities.core.worded import worded
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.http import HttpCall
from routing_admin.upstream.bodies import AnswerTooLargeError, BadEncodingError, Decompressor

PARAM_CHARS = 200
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_packed(call: HttpCall) -> bool:
    """Whether the body came in a content encoding."""
    return call.headers.get("content-encoding", "identity") != "identity"


def _unpack(call: HttpCall, limit: int) -> None:
    """Takes the body out of its gzip or deflate, as far as the limit goes.

    Raises `BadRequestError`: 415 for another encoding, 413 for what unfolds beyond the limit, 400 for what is none.
    """
    encoding = call.headers["content-encoding"]
    try:
        decompressor = Decompressor(encoding, limit)
    except BadEncodingError:
        message = worded("Content-Encoding must be gzip or deflate, or be left out.")
        raise BadRequestError(message, None, "unsupported_encoding", 415) from None
    try:
        call.body.data = decompressor.feed(bytes(call.body.take()))
        decompressor.end()
    except AnswerTooLargeError:
        raise _too_large(limit) from None
    except BadEncodingError:
        message = worded("The body is not %(encoding)s, as its Content-Encoding says.", encoding=encoding[:PARAM_CHARS])
        raise BadRequestError(message, None, "invalid_encoding") from None


def _too_large(limit: int) -> BadRequestError:
    message = worded("The body is larger than the limit of %(limit)s bytes.", limit=limit)
    return BadRequestError(message, None, "body_too_large", 413)


def read_object(call: HttpCall) -> dict[str, Any]:
    """The body as a JSON object. Raises `BadRequestError`: 413 when too large, 415 when packed strangely, else 400."""
    return parse_object(take_bytes(call))


def take_bytes(call: HttpCall) -> bytes | bytearray:
    """The body, unpacked; it is gone from the call. Raises `BadRequestError` as `read_object` does."""
    limit = body_limit(call.path)
    if is_packed(call):
        _unpack(call, limit)
    if len(call.body.data) > limit:
        raise _too_large(limit)
    if call.body.broken:
        message = worded("The body is incomplete. Send it again.")
        raise BadRequestError(message, None, "invalid_json")
    return call.body.take()


def parse_object(data: bytes | bytearray) -> dict[str, Any]:
    """Bytes as a JSON object.

    Raises `BadRequestError` for anything else, one that nests deeper than `MAX_DEPTH` or holds half a surrogate pair.
    """
    if data[:3] == BYTE_ORDER_MARK:
        data = data[3:]
    try:
        value = orjson.loads(data)
    except ValueError as error:
        raise _not_json(data, error) from None
    if not isinstance(value, dict):
        raise BadRequestError(worded("The body is not a JSON object."), None, "invalid_json")
    if _nests_deeply(value):
        for path, _, depth in walk(value):
            if depth > MAX_DEPTH:
                raise _too_deep(path)
    return value


def _nests_deeply(value: Any) -> bool:
    """Whether anything lies `MAX_DEPTH` levels down; looks at containers alone, level by level."""
    level, depth = [value], 0
    while level and depth < MAX_DEPTH:
        depth += 1
        level = [
            inner
            for each in level
            for inner in (each.values() if type(each) is dict else each)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


def _too_deep(path: str | None) -> BadRequestError:
    message = worded("The body is nested deeper than %(levels)s levels.", levels=MAX_DEPTH)
    return BadRequestError(message, path[:PARAM_CHARS] if path else None, "invalid_json")


def _not_json(data: bytes | bytearray, error: ValueError) -> BadRequestError:
    """The refusal of what the fast parser refuses, with the place when only a string in it is wrong."""
    try:
        value = json.loads(data)
    except RecursionError:
        return _too_deep(None)
    except ValueError as problem:
        return BadRequestError(_place_in_json(problem, error), None, "invalid_json")
    for path, each, _ in walk(value):
        if isinstance(each, str) and not _is_encodable(each):
            return BadRequestError(worded("This string contains half a surrogate pair, which cannot be encoded."), path)
        if isinstance(each, float) and (each != each or each in (float("inf"), float("-inf"))):
            return BadRequestError(worded("JSON does not allow NaN or Infinity."), path)
    return BadRequestError(worded("The body is not valid JSON."), None, "invalid_json")


def _place_in_json(*problems: ValueError) -> str:
    """Where the text stops being JSON, as the first parser that knows it says."""
    problem = next((each for each in problems if isinstance(each, json.JSONDecodeError)), None)
    if problem is None:
        return worded("The body is not valid JSON (not UTF-8).")
    return worded(
        "The body is not valid JSON (line %(line)s, column %(column)s).", line=problem.lineno, column=problem.colno
    )


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def walk(value: Any) -> Iterator[tuple[str, Any, int]]:
    """Every container's, key's and leaf's place, value and depth, without recursion; strange keys are cut short."""
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        path, each, depth = waiting.pop()
        yield path, each, depth
        if isinstance(each, dict):
            for key, inner in each.items():
                place = f"{path}.{key[:40].encode(errors='replace').decode()}".lstrip(".")
                yield place, key, depth
                waiting.append((place, inner, depth + 1))
        elif isinstance(each, list):
            waiting.extend((f"{path}[{at}]", inner, depth + 1) for at, inner in enumerate(each))
