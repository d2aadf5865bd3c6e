"""What the embedded provider answers piece by piece."""

from __future__ import annotations

from capabilities.core.protocols.echo.replies import decode
from capabilities.core.protocols.stream import finish_of
from capabilities.core.wire import Answer, Delta, Failure, StreamEvent

PIECE = 24
"""Characters of one piece of a streamed answer."""


def stream_of(outcome: Answer | Failure) -> list[StreamEvent]:
    """An outcome cut into the events of a stream."""
    if isinstance(outcome, Failure):
        return [outcome]
    text = outcome.text
    pieces = [Delta(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
    return [*pieces, finish_of(outcome)]


class WholeAnswer:
    """Gives the answer in pieces once all its bytes are there."""

    due = False

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, block: bytes) -> list[StreamEvent]:
        """Nothing before the end."""
        self._body += block
        return []

    def close(self) -> list[StreamEvent]:
        """The answer in pieces."""
        return stream_of(decode(200, bytes(self._body)))
