"""Parse server-sent events from blocks of bytes. A block may end anywhere within an event."""

from __future__ import annotations

from typing import Any, NamedTuple

from capabilities.core.json_codec import read_json

# Maximum size of an event in bytes. A larger event ends the stream with an error.
EVENT_BYTES = 48 * 1024 * 1024
FIELDS = ("data", "event", "id", "retry", "")


class EventTooLargeError(Exception):
    """An event is larger than the limit, which is `EVENT_BYTES` by default."""


class SseEvent(NamedTuple):
    """An event: its `data` lines joined by line breaks, and its event name, or "" if it has no name."""

    data: str
    event: str = ""


class SseParser:
    """Parses blocks of bytes into events and ignores comments. `started` is set after the first valid line."""

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        self.started = False
        self._limit = limit
        self._open: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._event = ""

    def feed(self, block: bytes) -> list[SseEvent]:
        """Return the events that this block completes. Raise `EventTooLargeError` if an event is too large."""
        events: list[SseEvent] = []
        if not (self._open or self._data or self._event):
            # Check this fast path first, because nearly all blocks consist of complete events with one data line each.
            events, block = _plain_events(block)
            self.started = self.started or bool(events)
            if not block:
                return events
        for line in self._lines(block):
            if line[:5] == b"data:":
                self.started = True
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
            elif line:
                self._read(line)
            else:
                self._dispatch(events)
        if self._size + sum(map(len, self._open)) > self._limit:
            raise EventTooLargeError
        return events

    def close(self) -> list[SseEvent]:
        """Return the last event, since many providers omit the empty line after it."""
        events: list[SseEvent] = []
        rest, self._open = b"".join(self._open).rstrip(b"\r"), []
        if rest:
            self._read(rest)
        self._dispatch(events)
        return events

    def _lines(self, block: bytes) -> list[bytes]:
        returns = b"\r" in block or (bool(self._open) and self._open[-1][-1:] == b"\r")
        if not returns and b"\n" not in block:
            if block:
                self._open.append(block)
            return []
        text = b"".join([*self._open, block])
        waiting = b""
        if returns:
            # Keep a CR at the end of the block for the next one, because an LF may follow.
            if text[-1:] == b"\r":
                text, waiting = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        rest = lines.pop() + waiting
        self._open = [rest] if rest else []
        return lines

    def _read(self, line: bytes) -> None:
        name, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        self.started = self.started or name in FIELDS
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value.encode())
            self._size += len(line)
        elif name == "event":
            self._event = value

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(data.decode("utf-8", "replace"), self._event))
            self._data = []
        self._event, self._size = "", 0


def _plain_events(block: bytes) -> tuple[list[SseEvent], bytes]:
    if block[:6] != b"data: " or b"\r" in block:
        return [], block
    whole, end, rest = block.rpartition(b"\n\n")
    text = whole[6:].decode("utf-8", "replace")
    data_texts = text.split("\n\ndata: ")
    if not end or text.count("\n") != 2 * (len(data_texts) - 1):
        return [], block
    return list(map(SseEvent, data_texts)), rest


def looks_like_sse(data: bytes) -> bool:
    """Return whether this short body could be the beginning of an event stream. Even an empty body could be."""
    return any(f"{name}:".encode().startswith(data.strip()) for name in FIELDS)


# The code below is a fast path for deltas. Nearly all events of a stream differ from the previous one only in their
# text. Parsing only the text between a known beginning and a known end gives the same result as parsing the entire
# event. If it is not exactly one JSON string, the entire event is parsed, so that errors are reported.

# Maximum number of events per stream from which to derive a template. If a provider adds random text to each event, no
# template matches.
TRIES = 8
# This text replaces the event's text, to check whether the same text also occurs elsewhere in the event.
PROBE = "words of no model"


class EventTemplate:
    """The beginning and the end that the events of a stream share, derived from one of these events."""

    __slots__ = ("_after", "_around", "_before", "_tries")

    def __init__(self) -> None:
        self._before, self._after, self._around = "", "", 0
        self._tries = TRIES

    def read_text(self, data: str) -> str:
        """Return an event's text if the event matches the template, otherwise an empty string."""
        prefix, suffix = self._before, self._after
        if not (prefix and data.startswith(prefix) and data.endswith(suffix)) or len(data) <= self._around:
            return ""
        try:
            text: str = read_json(data[len(prefix) - 1 : 1 - len(suffix)])
        except (ValueError, RecursionError):
            return ""
        return text

    def learn(self, data: str, value: dict[str, Any], holder: dict[str, Any], name: str) -> None:
        """Derive the template from an event. `value` is the parsed event, and `holder[name]` is its text.

        This overwrites the text in `holder`, so callers must read it first.
        """
        if not (self._tries and holder[name]):
            return
        self._tries -= 1
        prefix, mark, rest = data.partition(f'"{holder[name]}"')
        holder[name] = PROBE
        try:
            is_same = bool(mark) and read_json(f'{prefix}"{PROBE}"{rest}') == value
        except (ValueError, RecursionError):
            is_same = False
        if is_same:
            self._before, self._after = f'{prefix}"', f'"{rest}'
            self._around = len(self._before) + len(self._after)
