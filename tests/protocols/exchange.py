"""A call over a real socket that a protocol encodes and decodes, without the upstream driver's timeouts and limits."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from capabilities.core.message import ChatRequest, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.wire import (
    Annotation,
    Answer,
    Delta,
    Failure,
    Finish,
    Media,
    MediaData,
    StreamEvent,
    Supplement,
    Target,
    UpstreamRequest,
    base64_blocks,
)

KEY = "sk-canary-0123456789abcdef"


def join_body(request: UpstreamRequest) -> bytes:
    body = b""
    for piece in request.pieces():
        body += b"".join(base64_blocks(piece.blob)) if isinstance(piece, MediaData) else piece
    return body


def exchange(protocol: str, url: str, model: str, chat: ChatRequest, *, stream: bool) -> Answer | Failure:
    """Send a request and decode its response. A stream is assembled into one answer."""
    wire = PROTOCOLS[protocol]
    request = wire.encode(chat, Target("lab", url, model, KEY), stream=stream)
    address = urlsplit(request.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        path = f"{address.path}?{address.query}" if address.query else address.path
        connection.request("POST", path, join_body(request), dict(request.headers))
        response = connection.getresponse()
        headers = dict(response.getheaders())
        if not stream or response.status != 200:
            return wire.decode(response.status, headers, response.read())
        decoder, events = wire.decoder(), []
        while block := response.read1():
            events += decoder.feed(block)
        return assemble([*events, *decoder.close()])
    finally:
        connection.close()


def assemble(events: list[StreamEvent]) -> Answer | Failure:
    text = reasoning = refusal = ""
    thoughts: tuple[ReasoningBlock, ...] = ()
    media: list[Media] = []
    cited: list[Annotation] = []
    calls: dict[int, list[str | None]] = {}
    for event in events:
        if isinstance(event, Failure):
            return event
        if isinstance(event, Finish):
            tool_calls = tuple(
                ToolCall(c[0] or "", c[1] or "", c[2] or "", c[3], bool(c[4])) for _, c in sorted(calls.items())
            )
            texts = (text, tool_calls, reasoning or None, refusal or None)
            end = (event.finish_reason, event.usage, event.model, event.id, event.details)
            return Answer(*texts, *end, thoughts, media=tuple(media), annotations=tuple(cited))
        if isinstance(event, Supplement):
            media, cited = [*media, *event.media], [*cited, *event.annotations]
            continue
        assert isinstance(event, Delta)
        text, reasoning, refusal = text + event.text, reasoning + event.reasoning, refusal + event.refusal
        thoughts += event.thoughts
        for piece in event.tool_calls:
            call = calls.setdefault(piece.index, [None, None, "", None, None])
            call[0], call[1], call[3] = piece.id or call[0], piece.name or call[1], piece.signature or call[3]
            call[2], call[4] = (call[2] or "") + piece.arguments, call[4] or ("custom" if piece.custom else None)
    raise AssertionError("the stream ended without Finish or Failure")
