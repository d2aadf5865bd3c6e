"""`python -m tests.chaos hostile`: attacks by hostile clients and providers.

Each attack is a function. The table at the end lists them.
"""

from __future__ import annotations

import base64
import gzip
import json
import socket
import time
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

from tests.chaos.callers import CUT, Finding, Person, Reply, ask, at_once, chat, send
from tests.chaos.hostile_stage import Attack, Stage, make_attacks
from tests.gateway.serving import Server

MIB = 1024 * 1024
SLOW_FILES, SLOW_PAGES = 12, 6
"""The number of slow files (more than asyncio has threads on two cores), and the number of pages in each.

Reading a page takes some tenths of a second.
"""
SMALL_FILES, SMALL_FILE_SECONDS = 4, 2.5
"""How many small files are uploaded and sent to a model while slow files are read, and seconds allowed for each."""
MANY_AGENTS = 400
CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"
AMBIGUOUS_REQUESTS = {
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "gzip, chunked": b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    "0.9": b"GET /healthz\r\n\r\n",
}


def trailers(stage: Stage) -> None:
    """Send endless trailers and chunk extensions, and ambiguous requests as in request smuggling, without a key."""
    for start, unit in ((b"0\r\n", b"x-a: " + b"y" * 1000 + b"\r\n"), (b"3", b";name=" + b"v" * 1000)):
        sent, status = flood(stage.server, CHUNKED + start, unit * 64, 32 * MIB)
        stage.note(f"{status} to a flood", good=sent < 8 * MIB)
    for name, head in AMBIGUOUS_REQUESTS.items():
        _, status = flood(stage.server, head, b"", 0)
        stage.note(f"{status} to {name}", good=status.startswith(("4", "5")))


def flood(server: Server, start: bytes, unit: bytes, limit: int) -> tuple[int, str]:
    """Send the data until the server closes the connection. Return the number of bytes sent and the response status."""
    sent, answer = 0, b""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=20)) as connection:
        with suppress(OSError):
            connection.sendall(start)
            while sent < limit:
                connection.sendall(unit)
                sent += len(unit)
        with suppress(OSError):
            answer = connection.recv(65536)
    return sent, answer.split(b" ", 2)[1].decode() if answer else "closed"


def redaction(stage: Stage) -> None:
    """Send very long text that looks like keys: in a URL without authentication, and in a recorded prompt."""
    person = Person(stage.server).sign_in()
    fields = {"request_days": 30, "content_policy": "extract+convert", "default_language": "zh"}
    person.post("/settings/", **fields, record_bodies="on")
    text = "bearer " * 2300

    def fetch_path() -> None:
        stage.note(send(stage.server, "GET", "/" + "bearer%20" * 3000).status)

    def send_prompt() -> None:
        body = {"model": "one/lab", "messages": [{"role": "user", "content": text}]}
        stage.note(ask(stage.server, "POST", "/v1/chat/completions", body).status)

    at_once(*[fetch_path] * 4, *[send_prompt] * 4)
    person.post("/settings/", **fields)


def json_bombs(stage: Stage) -> None:
    values = b"[" + b"[]," * (4 * MIB) + b"[]]"
    body = b'{"model": "one/lab", "messages": %b}' % values
    call = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": %b}}' % values[: 6 * MIB] + b"[]]}"
    key = {"authorization": f"Bearer {stage.server.key}", "content-type": "application/json"}
    packed = key | {"content-encoding": "gzip"}
    tries = (
        ("/v1/chat/completions", gzip.compress(body), packed),
        ("/v1/messages", gzip.compress(body), packed),
        ("/v1/chat/completions", body, key),
        ("/mcp", call, key | {"accept": "application/json, text/event-stream"}),
    )
    for path, data, headers in tries:
        status = send(stage.server, "POST", path, data, headers).status
        stage.note(f"{status} at {path}", good=status in (400, 413, 422))


def large_calls(stage: Stage) -> None:
    """Send calls as large as allowed: with text, base64, many messages, image URLs, PDF pages, or text to `/mcp`.

    Base64 is sent to a model that does not exist. A real call would delay the measurement, because the provider (the
    fault lab) runs in this process.
    """
    messages = '{"role":"user","content":"hello there"},' * 1000
    images = '{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},' * 999
    start, end = '{"model":"%s","messages":[{"role":"user","content":%s', "}]}"
    pdf = base64.b64encode(slow_pdf(99, pages=3)).decode()
    file = json.dumps([{"type": "file", "file": {"file_data": f"data:application/pdf;base64,{pdf}"}}])
    tool = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_services","arguments":{"x":"'
    chat_path, model = "/v1/chat/completions", "one/lab"
    tries = (
        ("text", chat_path, start % (model, '"'), "some words " * 6000, 900, '"' + end),
        ("base64", chat_path, start % ("no/such", '"'), "QUJD" * 16000, 900, '"' + end),
        ("messages", chat_path, start % (model, '"first"},'), messages, 8, messages[:-1] + "]}"),
        ("images", chat_path, start % (model, "["), images, 9, images[:-1] + "]" + end),
        ("a PDF", chat_path, start % (model, file), "", 0, end),
        ("words for tools", "/mcp", tool, "some words " * 6000, 100, '"}}}'),
    )
    for name, path, before, piece, count, after in tries:
        stage.note(f"{send_parts(stage.server, path, (before, *[piece] * count, after)).status} to {name}")


def send_parts(server: Server, path: str, pieces: Sequence[str]) -> Reply:
    """Post a body in pieces, because copying a large body would delay the measurement."""
    headers = {
        "authorization": f"Bearer {server.key}",
        "content-type": "application/json",
        "content-length": str(sum(map(len, pieces))),
        "accept": "application/json, text/event-stream",
    }
    return send(server, "POST", path, (piece.encode() for piece in pieces), headers)


def many_parts(stage: Stage) -> None:
    """Send a hundred thousand images in a call. The call must be rejected, or its log entry must stay small."""
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    body = {"model": "one/lab", "messages": [{"role": "user", "content": [part] * 100_000}]}
    reply = ask(stage.server, "POST", "/v1/chat/completions", body)
    logged = ask(stage.server, "GET", f"/api/v1/requests/{reply.headers['x-request-id']}")
    stage.note(f"{reply.status}, {len(logged.body) // 1024} KiB logged", good=len(logged.body) < MIB)


def invented_names(stage: Stage) -> None:
    """Call many different models that do not exist. The metrics must not grow with the number of names."""
    before = len(send(stage.server, "GET", "/metrics").body)
    for number in range(400):
        chat(stage.server, "", f"invented-{number}/model-{number}")
    grown = len(send(stage.server, "GET", "/metrics").body) - before
    stage.note(f"/metrics grew by {grown // 1024} KiB", good=grown < 64 * 1024)


def runtime_agents(stage: Stage) -> None:
    statuses = list[int]()
    while len(statuses) < MANY_AGENTS and (not statuses or statuses[-1] < 400):
        statuses.append(ask(stage.server, "PUT", f"/api/v1/agents/made-{len(statuses)}", {"taskType": "chain"}).status)
    stage.note(f"{statuses[-1]} after {len(statuses)}", good=statuses[-1] in (403, 409, 429))


def sign_ins(stage: Stage) -> None:
    """Flood sign-in from one IP address and guess links from another.

    A user at the second address must be able to sign in.
    """

    def guess(number: int) -> None:
        person = Person(stage.server, source="127.0.0.9")
        person.open("/login/")
        status = person.post("/login/", username=f"visitor-{number}", password="guessed").status
        stage.note(status, good=status in (200, 429, 503))

    at_once(*(lambda number=number: guess(number) for number in range(24)))
    person = Person(stage.server, source="127.0.0.8")
    for number in range(60):
        person.open(f"/agent-page/rap_{number:08x}_{'x' * 43}_00000000/")
    person.sign_in()


def slow_files(stage: Stage) -> None:
    """Request the details of slow PDFs as one agent.

    At the same time, send small files to a model as another agent.
    """
    references = [store(stage.server, "slow.pdf", "application/pdf", slow_pdf(number)) for number in range(SLOW_FILES)]

    def read(reference: str) -> None:
        with suppress(*CUT):
            stage.note(artifact_details(stage.server, reference).status)

    def small() -> None:
        for number in range(SMALL_FILES):
            started, content = time.monotonic(), slow_pdf(SLOW_FILES + number, pages=1, words=9)
            reply = artifact_details(stage.neighbour, store(stage.neighbour, "small.pdf", "application/pdf", content))
            stage.note(f"{reply.status} to a small file", good=reply.status == 200)
            durations.append(time.monotonic() - started)

    durations, started = list[float](), time.monotonic()
    at_once(*(lambda reference=reference: read(reference) for reference in references), small)
    whole, listed = time.monotonic() - started, ", ".join(f"{duration:.1f}" for duration in durations)
    stage.note(f"small files took {listed} of {whole:.1f} s", good=max(durations) < SMALL_FILE_SECONDS)


def store(server: Server, name: str, kind: str, content: bytes) -> str:
    head = f'--part\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\ncontent-type: {kind}\r\n\r\n'
    headers = {"authorization": f"Bearer {server.key}", "content-type": "multipart/form-data; boundary=part"}
    return str(send(server, "POST", "/v1/files", head.encode() + content + b"\r\n--part--\r\n", headers).json["id"])


def artifact_details(server: Server, reference: str) -> Reply:
    content = [{"type": "text", "text": "What is in it?"}, {"type": "file", "file": {"file_id": reference}}]
    body = {"model": "one/lab", "messages": [{"role": "user", "content": content}]}
    return ask(server, "POST", "/v1/chat/completions", body)


def slow_pdf(number: int, pages: int = SLOW_PAGES, words: int = 20_000) -> bytes:
    """Return a small PDF that has many pages with many words."""
    content = zlib.compress(b"BT /F1 9 Tf " + b"(%d) Tj 0 1 Td " % number * words + b"ET", 9)
    kids = b" ".join(b"%d 0 R" % kid for kid in range(5, 5 + pages))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *([page] * pages),
    ]
    text, offsets = b"%PDF-1.4\n", list[int]()
    for object_number, body in enumerate(objects, 1):
        offsets.append(len(text))
        text += b"%d 0 obj\n%b\nendobj\n" % (object_number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(text))
    return b"%bxref\n0 %d\n0000000000 65535 f \n%b%b" % (text, size, table, end)


def descriptors(stage: Stage) -> None:
    opened = []
    try:
        for number in range(5 * 230):
            source = (f"127.0.0.{20 + number % 5}", 0)
            opened.append(socket.create_connection(("127.0.0.1", stage.server.port), timeout=20, source_address=source))
        for path in ("/healthz", "/readyz", "/metrics"):
            status = send(stage.server, "GET", path).status
            stage.note(f"{status} at {path}", good=status == 200)
    finally:
        for connection in opened:
            connection.close()


def absurd_numbers(stage: Stage) -> None:
    for stream in (False, True):
        reply = chat(stage.server, "", "one/fault:absurd_counts", stream=stream)
        row = _logged(stage.server, reply)
        counts = [value for name, value in row.items() if name.endswith("Tokens") and isinstance(value, int)]
        good = reply.status == 200 and bool(row) and all(0 <= count < 2**53 for count in counts)
        stage.note(f"{reply.status}, {'logged' if row else 'not logged'}", good=good)


def surrogate_halves(stage: Stage) -> None:
    for stream in (False, True):
        reply = chat(stage.server, "", "one/fault:half_emojis", stream=stream)
        whole = b"[DONE]" in reply.body if stream else b"So" in reply.body
        outcome = _logged(stage.server, reply).get("outcome")
        stage.note(f"{reply.status}, logged {outcome}", good=reply.status == 200 and whole and outcome == "ok")


def _logged(server: Server, reply: Reply) -> dict[str, Any]:
    response = ask(server, "GET", f"/api/v1/requests/{reply.headers.get('x-request-id', '')}")
    return dict(response.json) if response.status == 200 else {}


ATTACKS = (
    Attack("trailers and heads", trailers, megabytes=40),
    Attack("words like keys", redaction),
    Attack("JSON of small values", json_bombs, megabytes=500),
    Attack("the largest calls", large_calls, megabytes=500, seconds=0.1),
    Attack("100,000 images", many_parts, megabytes=400),
    Attack("invented models", invented_names),
    Attack("agents at run time", runtime_agents),
    Attack("sign-ins", sign_ins, megabytes=500),
    Attack("slow files", slow_files),
    Attack("idle connections", descriptors),
    Attack("absurd numbers", absurd_numbers),
    Attack("half emojis", surrogate_halves),
)


def attack(rounds: int) -> Finding:
    return make_attacks(ATTACKS * rounds)
