"""A local webhook server that records what it receives and returns prepared replies."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.conf import settings

from routing_admin.upstream import process_upstream, run_sync

Reply = tuple[int, bytes]
ACCEPTED: Reply = (200, b'{"errcode": 0, "code": 0, "errmsg": "ok"}')
"""A reply that counts as success for every kind of chat service."""


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class WebhookReceiver:
    """A server that records received notices. It responds with `replies` in order, then with `ACCEPTED`."""

    base: str
    received: list[Received] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)


def hmac_signature(key: str, text: str) -> str:
    """Return the HMAC signature that DingTalk and Feishu require for a message."""
    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


@contextmanager
def running_receiver() -> Iterator[WebhookReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            chat.received.append(Received(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            status, answer = chat.replies.pop(0) if chat.replies else ACCEPTED
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            if 300 <= status < 400:
                self.send_header("location", f"{chat.base}/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat = WebhookReceiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        # The upstream client was used in the event loop of `run_sync`, so it must be closed there.
        if settings.configured:
            run_sync(process_upstream().close())
        server.shutdown()
        server.server_close()
        thread.join()
