"""Read a request's body as a JSON object; error messages contain the position of the error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.conf import settings

from capabilities.core.translatable import translatable
from capabilities.json_bodies import (
    LARGE_BYTES,
    MIB,
    JsonTooLargeError,
    body_limit,
    load_json,
    nests_too_deeply,
    too_deep,
)
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.threads import run_in_thread
from routing_admin.upstream.bodies import AnswerTooLargeError, BadEncodingError, Decompressor

PARAM_CHARS = 200
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PACKED_BLOCK = 1024
"""Number of compressed bytes to decompress at a time; the result is at most 1 MiB."""


def is_packed(call: HttpCall) -> bool:
    """Return whether the body is compressed."""
    return call.headers.get("content-encoding", "identity") != "identity"


class _Unpacker:
    """Decompresses a gzip or deflate body, in steps and within the size limit.

    It raises `BadRequestError`: 415 for any other encoding, 413 for a body beyond the limit, 400 for invalid data.
    """

    def __init__(self, call: HttpCall) -> None:
        self._limit, self._encoding = body_limit(call.path), call.headers["content-encoding"]
        try:
            self._decompressor = Decompressor(self._encoding, self._limit)
        except BadEncodingError:
            message = translatable("Content-Encoding must be gzip or deflate, or be left out.")
            raise BadRequestError(message, None, "unsupported_encoding", 415) from None
        self._body, self._packed, self._position, self._data = call.body, bytes(call.body.take()), 0, bytearray()

    def step(self, size: int) -> bool:
        """Decompress until about `size` more bytes are available, and return whether the body is complete."""
        end = len(self._data) + size
        try:
            while self._position < len(self._packed) and len(self._data) < end:
                self._data += self._decompressor.feed(self._packed[self._position : self._position + PACKED_BLOCK])
                self._position += PACKED_BLOCK
            if self._position >= len(self._packed):
                self._decompressor.end()
        except AnswerTooLargeError:
            raise _too_large(self._limit) from None
        except BadEncodingError:
            encoding = self._encoding[:PARAM_CHARS]
            message = translatable("The body is not %(encoding)s, as its Content-Encoding says.", encoding=encoding)
            raise BadRequestError(message, None, "invalid_encoding") from None
        if self._position < len(self._packed):
            return False
        self._body.data = self._data
        return True


async def unpack(call: HttpCall, name: str) -> None:
    """Decompress the body; before each MiB, reserve memory for the caller identified by `name`.

    Raise `BadRequestError` like `read_object`, or `OverloadedError` if no memory is left.
    """
    unpacker = _Unpacker(call)
    is_whole = False
    while not is_whole:
        if call.body.room is not None:
            call.body.room.add(name, 1)
        is_whole = await run_in_thread(call, partial(unpacker.step, MIB))
    call.body.is_unpacked = True


def _too_large(limit: int) -> BadRequestError:
    message = translatable("The body is larger than the limit of %(limit)s bytes.", limit=limit)
    return BadRequestError(message, None, "body_too_large", 413)


def read_object(call: HttpCall) -> dict[str, Any]:
    """Return the body as a JSON object.

    Raise `BadRequestError`: 413 if it is too large, 415 if its encoding is not supported, else 400.
    """
    return parse_object(take_bytes(call))


def take_bytes(call: HttpCall) -> bytes | bytearray:
    """Remove the body from the call and return it decompressed; raise `BadRequestError` like `read_object`."""
    limit = body_limit(call.path)
    if is_packed(call) and not call.body.is_unpacked:
        unpacker = _Unpacker(call)
        while not unpacker.step(limit):
            pass
    if len(call.body.data) > limit:
        raise _too_large(limit)
    # Check this after the size: a body beyond the limit is also incomplete, because it was not read to its end.
    if call.body.broken:
        message = translatable("The body is incomplete. Send it again.")
        raise BadRequestError(message, None, "invalid_json")
    return call.body.take()


def parse_object(data: bytes | bytearray) -> dict[str, Any]:
    """Parse bytes as a JSON object.

    Raise `BadRequestError` for invalid JSON, excessive nesting, lone surrogates or (with status 413) too many values.
    """
    # JSON parsers reject a byte order mark, so remove it.
    if data[:3] == BYTE_ORDER_MARK:
        data = data[3:]
    try:
        value = load_json(data, counts_text=True)
    except JsonTooLargeError as error:
        raise BadRequestError(error.sentence, None, error.code, error.status) from None
    except ValueError as error:
        raise _not_json(data, error) from None
    if not isinstance(value, dict):
        raise BadRequestError(translatable("The body is not a JSON object."), None, "invalid_json")
    if nests_too_deeply(value):
        raise _too_deep(next((path for path, _, depth in walk(value) if depth > settings.MAX_JSON_DEPTH), None))
    return value


def _too_deep(path: str | None) -> BadRequestError:
    return BadRequestError(too_deep(), path[:PARAM_CHARS] if path else None, "invalid_json")


def _not_json(data: bytes | bytearray, error: ValueError) -> BadRequestError:
    # The fast parser reports no position, so parse the text again with the standard library to find it.
    if len(data) > LARGE_BYTES:  # Parsing a large body again would take seconds and hold the GIL.
        is_placed = isinstance(error, json.JSONDecodeError)
        sentence = _json_error_message(error) if is_placed else translatable("The body is not valid JSON.")
        return BadRequestError(sentence, None, "invalid_json")
    try:
        value = json.loads(data)
    except RecursionError:
        return _too_deep(None)
    except ValueError as problem:
        return BadRequestError(_json_error_message(problem, error), None, "invalid_json")
    for path, inner, _ in walk(value):
        if isinstance(inner, str) and not _is_encodable(inner):
            return BadRequestError(
                translatable("This string contains half a surrogate pair, which cannot be encoded."), path
            )
        if isinstance(inner, float) and (inner != inner or inner in (float("inf"), float("-inf"))):
            return BadRequestError(translatable("JSON does not allow NaN or Infinity."), path)
    return BadRequestError(translatable("The body is not valid JSON."), None, "invalid_json")


def _json_error_message(*problems: ValueError) -> str:
    problem = next((error for error in problems if isinstance(error, json.JSONDecodeError)), None)
    if problem is None:
        return translatable("The body is not valid JSON (not UTF-8).")
    return translatable(
        "The body is not valid JSON (line %(line)s, column %(column)s).", line=problem.lineno, column=problem.colno
    )


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def walk(value: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield the path, value and depth of every container, key and leaf; paths contain only the start of long keys."""
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    while pending:
        path, node, depth = pending.pop()
        yield path, node, depth
        if isinstance(node, dict):
            for key, inner in node.items():
                # Keys come from the caller, so they may have any length or contain lone surrogates.
                inner_path = f"{path}.{key[:40].encode(errors='replace').decode()}".lstrip(".")
                yield inner_path, key, depth
                pending.append((inner_path, inner, depth + 1))
        elif isinstance(node, list):
            pending.extend((f"{path}[{index}]", inner, depth + 1) for index, inner in enumerate(node))
