"""Stream the embedded provider's answers in pieces."""

from __future__ import annotations

from capabilities.core.protocols.echo.replies import decode
from capabilities.core.protocols.stream import finish_of
from capabilities.core.wire import Answer, Delta, Failure, StreamEvent

# Characters per piece.
PIECE = 24


def stream_of(outcome: Answer | Failure) -> list[StreamEvent]:
    """Return the events of a stream for an outcome."""
    if isinstance(outcome, Failure):
        return [outcome]
    text = outcome.text
    pieces = [Delta(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
    return [*pieces, finish_of(outcome)]


class WholeAnswer:
    """Collects the complete answer, and returns it in pieces at the end."""

    due = False

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, block: bytes) -> list[StreamEvent]:
        self._body += block
        return []

    def close(self) -> list[StreamEvent]:
        return stream_of(decode(200, bytes(self._body)))
