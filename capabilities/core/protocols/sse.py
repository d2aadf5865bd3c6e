"""Server-sent events out of bytes, whatever the cuts between blocks."""

from __future__ import annotations

from dataclasses import dataclass

EVENT_BYTES = 16 * 1024 * 1024
"""The most one event may take; a longer one ends the stream as too large."""
FIELDS = ("data", "event", "id", "retry", "")


class EventTooLargeError(Exception):
    """One event is longer than `EVENT_BYTES`."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: its `data` lines joined by line breaks, and its name (empty when none was given)."""

    data: str
    event: str = ""


class SseParser:
    """Collects bytes and gives events; a comment gives none. `started` tells that a line of this format was seen."""

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        self.started = False
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[str] = []
        self._size = 0
        self._event = ""

    def feed(self, block: bytes) -> list[SseEvent]:
        """Events completed by this block; raises `EventTooLargeError`."""
        self._buffer += block
        events: list[SseEvent] = []
        while (line := self._line()) is not None:
            events += self._read(line)
        if len(self._buffer) + self._size > self._limit:
            raise EventTooLargeError
        return events

    def close(self) -> list[SseEvent]:
        """The last event, which many providers leave without its empty line."""
        rest, self._buffer = bytes(self._buffer).rstrip(b"\r"), bytearray()
        events = self._read(rest) if rest else []
        return [*events, *self._dispatch()]

    def _line(self) -> bytes | None:
        """The next whole line; a CR at the very end waits, since an LF may follow."""
        buffer = self._buffer
        feed = buffer.find(b"\n", self._searched)
        carriage = buffer.find(b"\r", self._searched, feed if feed >= 0 else len(buffer))
        ends = [end for end in (feed, carriage) if end >= 0]
        if not ends or (min(ends) == carriage and carriage == len(buffer) - 1):
            self._searched = max(0, len(buffer) - 1)
            return None
        end = min(ends)
        line = bytes(buffer[:end])
        del buffer[: end + (2 if buffer[end : end + 2] == b"\r\n" else 1)]
        self._searched = 0
        return line

    def _read(self, line: bytes) -> list[SseEvent]:
        text = line.decode("utf-8", "replace").removeprefix("\ufeff")
        if not text:
            return self._dispatch()
        name, _, value = text.partition(":")
        self.started = self.started or name in FIELDS
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
        elif name == "event":
            self._event = value
        return []

    def _dispatch(self) -> list[SseEvent]:
        events = [SseEvent("\n".join(self._data), self._event)] if self._data else []
        self._data, self._event, self._size = [], "", 0
        return events


def begins_like_a_stream(data: bytes) -> bool:
    """Whether so short a body could have become an event stream; an empty one could."""
    return any(f"{name}:".encode().startswith(data.strip()) for name in FIELDS)
