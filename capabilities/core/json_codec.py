"""Read and write JSON with the codec that the program sets at start-up, or else with the standard library.

The `core` packages import only the standard library, so the program gives them a faster codec, which must return the
same values. Input that the faster codec rejects (NaN, lone surrogates, encodings other than UTF-8, numbers out of its
range) is passed to the standard library. Lone surrogates are never written: two adjacent halves are joined, and all
others become U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.surrogates import may_have_surrogate, repair, repair_text

# JSON is scanned before it is parsed, to count its values and find its long strings. A parser turns the two bytes `[]`
# into an object of 60 bytes, and no other thread can run until it has parsed everything. The scan runs in short steps,
# and limits how many values the parser gets in one step.

BLOCK = 16 * 1024
"""Number of bytes scanned in one step. Only longer strings are decoded in pieces."""
MAX_ANSWER_VALUES = 100_000
"""Maximum number of values in a provider's response or in one event of a stream. Parsing them takes about ten
milliseconds."""
NUMBERS_PER_ANSWER_VALUE = 16
"""Like `NUMBERS_PER_VALUE`, but for providers' responses. It is higher, because a batch of embeddings can have more
than a million numbers."""
MAX_INNER_VALUES = 20_000
"""Maximum number of values in JSON that is inside a string, such as a tool's arguments or result."""
NUMBERS_PER_VALUE = 4
"""How many numbers, or literals such as `true`, count as one value."""
PIECE_BYTES = 256 * 1024
"""Number of bytes of a long string that are decoded in one step."""
SAMPLE = 1024
"""Number of bytes at the start of a piece that are examined to distinguish text from base64."""
BASE64 = string.ascii_letters.encode() + string.digits.encode() + b"+/-_=\\"
"""The characters of base64, and the backslash, with which JSON escapes slashes and line breaks."""
MAX_ESCAPE = 12
"""Length in bytes of an escaped surrogate pair, which is the longest escape."""
UNFINISHED_ESCAPE = re.compile(rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
"""An incomplete escape, or the first half of an escaped surrogate pair, at the end of a piece."""


class TooManyValuesError(ValueError):
    """The document has more values than the limit allows."""


@dataclass(slots=True)
class JsonScan:
    """How many values a JSON document has, and where the content of each of its long strings starts and ends."""

    strings: int = 0
    containers: int = 0
    commas: int = 0
    long_strings: list[tuple[int, int]] = field(default_factory=list)
    numbers_per_value: int = NUMBERS_PER_VALUE

    @property
    def values(self) -> int:
        """Return the number of values.

        Each string (including member names), array and object counts as one. Several other values together count as
        one.
        """
        return self.strings + self.containers + self.commas // self.numbers_per_value


def scan_json(data: bytes | bytearray, max_values: int, numbers_per_value: int = NUMBERS_PER_VALUE) -> JsonScan:
    """Count the values in JSON in linear time. If the JSON is invalid, the counts are meaningless.

    Raise `TooManyValuesError` as soon as there are more than `max_values`.
    """
    scan, start, string_start, in_string, quote = JsonScan(numbers_per_value=numbers_per_value), 0, 0, False, 0
    while start < len(data):
        if in_string:
            if quote < start and (quote := data.find(b'"', start)) == -1:
                break
            # Skip most of a long string, and scan only its end.
            if quote - start > BLOCK:
                start = _last_safe_offset(data, start, quote)
        block, length = _mask_escapes(data[start : start + BLOCK])
        if not in_string or b'"' in block:
            # Escaped quotes are masked, so every second piece between quotes is a string's content.
            pieces = block.split(b'"')
            if in_string and start + len(pieces[0]) - string_start > BLOCK:
                scan.long_strings.append((string_start, start + len(pieces[0])))
            outside = b"".join(pieces[1 if in_string else 0 :: 2])
            scan.strings += len(pieces) // 2 if not in_string else (len(pieces) - 1) // 2
            scan.containers += outside.count(b"[") + outside.count(b"{")
            scan.commas += outside.count(b",")
            if scan.values > max_values:
                raise TooManyValuesError
            in_string ^= len(pieces) % 2 == 0
            # If the last string continues in the next block, remember where its content starts.
            string_start = start + length - len(pieces[-1])
        start += length
    return scan


def _last_safe_offset(data: bytes | bytearray, start: int, quote: int) -> int:
    # Look for the last offset that is certainly not inside an escape, in the `BLOCK` bytes before the next quote. If
    # there is none, return `start`, which is never inside an escape.
    last = len(data[quote - BLOCK : quote].rstrip(b"\\"))
    return quote - BLOCK + last if last else start


def is_bounded(
    text: str | bytes, max_values: int = MAX_INNER_VALUES, numbers_per_value: int = NUMBERS_PER_VALUE
) -> bool:
    """Return whether JSON has few enough values to be parsed.

    The defaults are for JSON inside a string from a caller, because the limit on request bodies does not count its
    values.
    """
    # Each value takes up at least one character.
    if len(text) <= max_values:
        return True
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    try:
        scan_json(data, max_values, numbers_per_value)
    except TooManyValuesError:
        return False
    return True


def _mask_escapes(block: bytes | bytearray) -> tuple[bytes | bytearray, int]:
    # If the block ends within an escape, leave the backslash to the next block.
    if block.endswith(b"\\") and (len(block) - len(block.rstrip(b"\\"))) % 2 and len(block) > 1:
        block = block[:-1]
    if b'\\"' not in block:
        return block, len(block)
    # Replace escapes with text of the same length, so that offsets do not change.
    return block.replace(b"\\\\", b"__").replace(b'\\"', b"__"), len(block)


class TooMuchTextError(ValueError):
    """The document has more text in long strings than the limit allows."""


def extract_strings(
    data: bytes | bytearray,
    scan: JsonScan,
    parse: Callable[[bytes], Any],
    mark: str,
    max_text: float = math.inf,
) -> tuple[bytes, dict[str, str]]:
    """Replace each long string in the document with a placeholder.

    Return the document, and a map from placeholders to strings. Placeholders begin with `mark`. No string in the
    document may begin with it. `parse` is called with pieces of each string, as quoted JSON, and returns them decoded;
    it may raise any exception. Raise `TooMuchTextError` if long strings other than base64 have more than `max_text`
    bytes in total.
    """
    skeleton, texts, plain_bytes, end = bytearray(), dict[str, str](), 0, 0
    with memoryview(data) as view:
        for at, (start, stop) in enumerate(scan.long_strings):
            name = f"{mark}{at}"
            skeleton += view[end:start]
            skeleton += name.encode()
            pieces = list[str]()
            for first, last in _pieces(view, start, stop):
                pieces.append(parse(b"".join((b'"', view[first:last], b'"'))))
                # Base64 is file content and does not count as text.
                if not _looks_like_base64(view[first : first + SAMPLE]):
                    plain_bytes += last - first
                    if plain_bytes > max_text:
                        raise TooMuchTextError
            texts[name] = "".join(pieces)
            end = stop
        skeleton += view[end:]
    return bytes(skeleton), texts


def _looks_like_base64(sample: memoryview) -> bool:
    # Skip the prefix of a data URL. A byte that base64 cannot contain, such as a space, indicates text.
    text = bytes(sample)
    return not text[text.find(b",") + 1 :].translate(None, BASE64)


def _pieces(view: memoryview, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while start < stop:
        end = _safe_end(view, start, stop)
        yield start, end
        start = end


def _safe_end(view: memoryview, start: int, stop: int) -> int:
    end = start + PIECE_BYTES
    if end >= stop:
        return stop
    # Do not split a UTF-8 character. All its bytes after the first one have the form 10xxxxxx.
    while end > start + PIECE_BYTES - 3 and view[end] & 0xC0 == 0x80:
        end -= 1
    if b"\\" not in bytes(view[end - MAX_ESCAPE : end]):
        return end
    # Do not split an escape or a surrogate pair. A backslash that is itself escaped does not begin an escape.
    tail = bytes(view[start:end]).replace(b"\\\\", b"__")[-MAX_ESCAPE:]
    match = UNFINISHED_ESCAPE.search(tail)
    return end - (len(tail) - match.start()) if match else end


def restore_strings(value: Any, texts: dict[str, str]) -> Any:
    """Replace each placeholder with its long string, in values and in member names."""
    whole = [value]
    # Use a stack instead of recursion, because the value may be deeply nested.
    waiting: list[Any] = [whole]
    while waiting:
        container = waiting.pop()
        for key, member in container.items() if type(container) is dict else enumerate(container):
            if type(member) is str and member in texts:
                container[key] = texts[member]
            elif type(member) is dict or type(member) is list:
                waiting.append(member)
        if type(container) is dict and not texts.keys().isdisjoint(container):
            # Build a new object, so that the members keep their order.
            members = [(texts.get(key, key), member) for key, member in container.items()]
            container.clear()
            container.update(members)
    return whole[0]


Read = Callable[[bytes | str], Any]
Write = Callable[[Any, Callable[[Any], Any]], bytes]


def _write_plain(value: Any, default: Callable[[Any], Any]) -> bytes:
    return repair_text(json.dumps(value, default=default, ensure_ascii=False, separators=(",", ":"))).encode()


DIGITS = 20
"""Length in characters of the longest integer that every codec reads exactly, including its sign."""
_given: list[tuple[Read, Write]] = []


def set_codec(read: Read, write: Write) -> None:
    """Use this codec from now on. Both functions must raise ValueError or TypeError for values that they reject."""
    _given[:] = [(read, write)]


def read_json(data: bytes | str, *, is_trusted: bool = False) -> Any:
    """Parse JSON. Raise ValueError if it is invalid, or RecursionError if it is nested too deeply.

    Unless `is_trusted`, raise `TooManyValuesError` if there are more values than a provider may send.
    """
    if not is_trusted and not is_bounded(data, MAX_ANSWER_VALUES, NUMBERS_PER_ANSWER_VALUE):
        raise TooManyValuesError
    for read, _ in _given:
        try:
            return read(data)
        # JSON that the faster codec rejects may still be valid for the standard library.
        except ValueError:
            break
    return json.loads(data, parse_int=_read_int)


def _read_int(text: str) -> int | float:
    # Faster codecs read an integer beyond 64 bits as a float, so do the same with the standard library.
    number = int(text) if len(text) <= DIGITS else float(text)
    return number if isinstance(number, float) or -(2**63) <= number < 2**64 else float(number)


def read_repaired_json(data: bytes | str, *, is_trusted: bool = False) -> Any:
    """Parse JSON, and join or replace lone surrogates, because no encoding could write them again."""
    value = read_json(data, is_trusted=is_trusted)
    return repair(value) if may_have_surrogate(data) else value


def write_json(value: Any, make_default: Callable[[], Callable[[Any], Any]]) -> bytes:
    """Return the value as compact UTF-8 JSON.

    `make_default` is called for each codec that is tried. It returns a function that converts values of other types.
    Raise `TypeError` for a value that no codec accepts, and `ValueError` for a value that contains itself.
    """
    for _, write in _given:
        try:
            return write(value, make_default())
        except (TypeError, ValueError):
            break
    return _write_plain(value, make_default())
