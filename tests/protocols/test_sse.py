"""Wherever the network splits a stream, the server-sent events are the same."""

from __future__ import annotations

import pytest

from capabilities.core.protocols.sse import SseEvent, SseParser

STREAM = b"data: a\n\ndata: b\ndata: c\n\nevent: end\ndata: d\n\n: comment\n\ndata: e\r\n\r\ndata: f"
EVENTS = [SseEvent("a", ""), SseEvent("b\nc", ""), SseEvent("d", "end"), SseEvent("e", ""), SseEvent("f", "")]


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_stream_cut_at_any_byte_has_the_same_events(cut: int) -> None:
    parser = SseParser()
    assert [*parser.feed(STREAM[:cut]), *parser.feed(STREAM[cut:]), *parser.close()] == EVENTS


def test_complete_event_after_the_first_line_of_another_belongs_to_that_one() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"data: b\n\n") == [SseEvent("a\nb", "")]
