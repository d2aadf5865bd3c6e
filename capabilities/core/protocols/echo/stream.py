"""Stream the embedded provider's answers in chunks."""

from __future__ import annotations

from capabilities.core.protocols.echo.replies import decode
from capabilities.core.protocols.stream import build_finish
from capabilities.core.wire import Answer, Delta, Failure, StreamEvent

# Number of characters per chunk.
PIECE = 24


def build_events(outcome: Answer | Failure) -> list[StreamEvent]:
    if isinstance(outcome, Failure):
        return [outcome]
    text = outcome.text
    pieces = [Delta(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
    return [*pieces, build_finish(outcome)]


class BufferedDecoder:
    """Collects the complete answer, and returns it in chunks at the end."""

    due = False

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, block: bytes) -> list[StreamEvent]:
        self._body += block
        return []

    def close(self) -> list[StreamEvent]:
        return build_events(decode(200, bytes(self._body)))
