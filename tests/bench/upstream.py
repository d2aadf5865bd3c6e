"""`python -m tests.bench.upstream PORT`: a provider that is as fast as possible, so that it hardly affects results.

The URL's first segment selects the response: `plain` is a small completion, `fail` is 503, `stream` has 200 chunks at
full speed, and `paced` has 200 chunks with a delay before each. Only a request's path and length are parsed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast

CHUNKS = 200
PAUSE_SECONDS = 0.01
NAME = "bench-model"


def completion() -> bytes:
    message = {"role": "assistant", "content": "Hello from the bench."}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": NAME, "choices": [choice], "usage": usage}
    ).encode()


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": NAME, "choices": [choice]}
    data = b"data: " + json.dumps(value).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


PLAIN = whole(b"200 OK", completion())
FAIL = whole(b"503 Service Unavailable", b'{"error":{"message":"overloaded","type":"server_error"}}')
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORDS = [event({"content": f"word {number} "}) for number in range(CHUNKS)]
END = event({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
STREAM = (STREAM_HEAD, event({"role": "assistant", "content": ""}), *WORDS, END)


class Provider(asyncio.Protocol):
    """A connection to the provider. Its requests are sequential, and each is answered once its body is complete."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.missing = 0
        self.path = b""
        self.pacing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pacing is not None:
            self.pacing.cancel()

    def data_received(self, data: bytes) -> None:
        if self.missing:
            self.missing -= len(data)
        else:
            self.buffer += data
            end = self.buffer.find(b"\r\n\r\n")
            if end == -1:
                return
            head = bytes(self.buffer[:end]).lower()
            self.path = head.split(b" ", 2)[1]
            length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]) if b"content-length:" in head else 0
            self.missing = length - (len(self.buffer) - end - 4)
            self.buffer.clear()
        if self.missing <= 0:
            self.missing = 0
            self.answer()

    def answer(self) -> None:
        behaviour = self.path.split(b"/", 2)[1]
        if behaviour == b"paced":
            self.pacing = asyncio.ensure_future(self.pace())
        elif behaviour == b"stream":
            for block in STREAM:
                self.transport.write(block)
        else:
            self.transport.write({b"plain": PLAIN, b"fail": FAIL}[behaviour])

    async def pace(self) -> None:
        self.transport.write(STREAM_HEAD)
        for word in WORDS:
            await asyncio.sleep(PAUSE_SECONDS)
            self.transport.write(word)
        self.transport.write(END)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1])))
