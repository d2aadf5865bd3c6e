"""The fault lab's scenarios. Each simulates a fault, and states which fault plain and streamed calls must report."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

from capabilities.core.wire import Fault
from tests.lab.capable_model import choose_reply, wants_thought
from tests.lab.operations import OPERATIONS
from tests.lab.received_requests import ReceivedRequest
from tests.lab.recordings import RECORDINGS
from tests.lab.response_recordings import RESPONSE_RECORDINGS
from tests.lab.shapes import VENDORS, Frames, ReplyText, Vendor, json_bytes, sse
from tests.lab.strict_hosts import RefusedError, known_host
from tests.lab.tool_reader import next_reply
from tests.lab.wire import Connection

JSON = "application/json"
THOUGHT = "First I think about it. 先想一想。"
SSE = "text/event-stream"


@dataclass(frozen=True)
class Step:
    """A step of a script: the name of a scenario and its parameters, as text."""

    name: str
    params: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ":".join(
            [self.name, *(",".join(f"{k}={v}" for k, v in self.params.items()),)] if self.params else [self.name]
        )


@dataclass
class ScriptedExchange:
    """What a scenario works with: the connection, the request, the vendor's format and the step's parameters."""

    connection: Connection
    request: ReceivedRequest
    params: dict[str, str]

    @property
    def vendor(self) -> Vendor:
        operation = OPERATIONS.get(self.request.operation)
        return operation(self.request) if operation else VENDORS[self.request.protocol]

    @property
    def kind(self) -> str:
        return getattr(self.vendor, "kind", JSON)

    def number(self, name: str, default: float) -> float:
        return float(self.params.get(name, default))

    def reply_text(self, **changes: Any) -> ReplyText:
        """Return the step's `text`, or else an echo of the question and its files."""
        files = "".join(f" [{media.mime_type or media.url}, {len(media.data)} bytes]" for media in self.request.media)
        return ReplyText(**{"text": self.params.get("text") or f"You said: {self.request.question}{files}", **changes})

    def frames(self, reply: ReplyText | None = None) -> Frames:
        return self.vendor.frames(reply or self.reply_text(), self.request.model)

    def body(self, reply: ReplyText | None = None) -> bytes:
        return dump(self.vendor.plain(reply or self.reply_text(), self.request.model))

    async def speak(self, reply: ReplyText) -> None:
        """Send an answer as the request asks for it, complete or streamed."""
        if self.request.stream:
            await self.stream(self.frames(reply).all())
        else:
            await self.connection.reply(200, self.body(reply), self.kind)

    async def stream(self, frames: list[bytes], *, end: bool = True) -> None:
        """Send the frames one by one. If `end` is true, terminate the chunked body."""
        await self.connection.start(200, SSE)
        for frame in frames:
            await self.connection.chunk(frame)
        if end:
            await self.connection.end()

    async def fail(self, status: int, body: Any, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.connection.reply(status, dump(body), JSON, named)


Play = Callable[[ScriptedExchange], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A named scenario: its description, its row in the fault table, and the faults that a plain call and a streamed
    call report.

    A fault of None means that the call succeeds. `needs` lists the protocols that have this scenario.
    """

    name: str
    meaning: str
    act: Play
    plain: Fault | None
    stream: Fault | None
    row: str
    needs: tuple[str, ...]


SCENARIOS: dict[str, Scenario] = {}
ALL = tuple(VENDORS)
SAME = object()


def scenario(
    name: str, meaning: str, plain: Fault | None = None, stream: Any = SAME, row: str = "", needs: tuple[str, ...] = ALL
) -> Callable[[Play], Play]:
    """Return a decorator that registers a scenario. `stream` is given if a streamed call reports a fault other than
    `plain`.
    """

    def enter(act: Play) -> Play:
        SCENARIOS[name] = Scenario(name, meaning, act, plain, plain if stream is SAME else stream, row, needs)
        return act

    return enter


def dump(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json_bytes(value)


# Scenarios in which the answer is valid.


@scenario("ok", "answers: `text`, else what it heard")
async def ok(exchange: ScriptedExchange) -> None:
    if exchange.request.tools and exchange.request.tool_choice in {"required", "any", "ANY", *exchange.request.tools}:
        await exchange.speak(
            exchange.reply_text(text="", tool=(exchange.request.tools[0], {"city": "Zürich"}), finish="tool_calls")
        )
        return
    await exchange.speak(exchange.reply_text())


@scenario("unstreamed", "answers whole, also where a stream was asked for")
async def unstreamed(exchange: ScriptedExchange) -> None:
    await exchange.connection.reply(200, exchange.body(), exchange.kind)


@scenario("capable", "calls the tool that fits, by its schema, or answers JSON by schema; else what it heard")
async def capable(exchange: ScriptedExchange) -> None:
    reply = choose_reply(exchange.request) or exchange.reply_text()
    await exchange.speak(replace(reply, reasoning=THOUGHT) if wants_thought(exchange.request) else reply)


@scenario("tool_reader", "calls the tools that a user names, one after the other, then says what the last one gave")
async def tool_reader(exchange: ScriptedExchange) -> None:
    await exchange.speak(next_reply(exchange.request) or exchange.reply_text())


@scenario("tool_call", "calls the tool `tool` (default get_weather) without a word")
async def tool_call(exchange: ScriptedExchange) -> None:
    name = exchange.params.get("tool", "get_weather")
    await exchange.speak(ReplyText(text="", tool=(name, {"city": "Zürich", "days": 2}), finish="tool_calls"))


@scenario("strict", "answers as the host `host` does, and refuses what that refuses")
async def strict(exchange: ScriptedExchange) -> None:
    host = known_host(exchange.params.get("host", "lab"), exchange.request.protocol)
    try:
        body = host.answer(exchange.request.data, stream=exchange.request.stream)
    except RefusedError as refused:
        kind, code = "invalid_request_error", "unsupported_parameter" if refused.param else None
        await exchange.fail(400, exchange.vendor.error(400, kind, str(refused), code, refused.param))
        return
    await exchange.connection.reply(200, body, SSE if exchange.request.stream else JSON)


@scenario("reasoning", "reasons, then answers")
async def reasoning(exchange: ScriptedExchange) -> None:
    await exchange.speak(exchange.reply_text(reasoning=THOUGHT))


@scenario("reasoning_only", "reasons and says nothing else: an answer all the same", row="14")
async def reasoning_only(exchange: ScriptedExchange) -> None:
    await exchange.speak(ReplyText(text="", reasoning="Only thinking."))


@scenario("length", "stops at the token limit with nothing said: an answer", row="14")
async def length(exchange: ScriptedExchange) -> None:
    await exchange.speak(ReplyText(text="", finish="length"))


@scenario("filtered", "stops for the content filter with nothing said: an answer", row="14")
async def filtered(exchange: ScriptedExchange) -> None:
    await exchange.speak(ReplyText(text="", finish="content_filter"))


@scenario("stops", "says `text`, or nothing where it is empty, and stops with the vendor's `reason`", row="14")
async def stops(exchange: ScriptedExchange) -> None:
    reply = ReplyText(text=exchange.params.get("text", "So far."), finish="length")
    usual, reason = (
        f'"{word}"'.encode() for word in (exchange.vendor.finishes["length"], exchange.params.get("reason", "new"))
    )
    if exchange.request.stream:
        await exchange.stream([frame.replace(usual, reason) for frame in exchange.frames(reply).all()])
    else:
        await exchange.connection.reply(200, exchange.body(reply).replace(usual, reason), JSON)


@scenario(
    "recorded",
    "plays the recording `name`, of which there is one for each protocol (tests/lab/recordings.py)",
    row="14",
)
async def recorded(exchange: ScriptedExchange) -> None:
    name, protocol = exchange.params.get("name", "counts"), exchange.request.protocol
    recording = RESPONSE_RECORDINGS[name] if protocol == "openai-responses" else RECORDINGS[name][protocol]
    if exchange.request.stream:
        await exchange.stream([sse(event, event.get("type", "")) for event in recording.events])
    else:
        await exchange.connection.reply(200, dump(recording.whole), JSON)


@scenario("delay", "waits `seconds` (0.2), then answers")
async def delay(exchange: ScriptedExchange) -> None:
    if not await exchange.connection.wait(exchange.number("seconds", 0.2)):
        await ok(exchange)


@scenario("bytes", "answers, one byte a packet")
async def single_bytes(exchange: ScriptedExchange) -> None:
    if not exchange.request.stream:
        await exchange.connection.reply(200, exchange.body(), JSON, slow=0.0)
        return
    await exchange.connection.start(200, SSE)
    for byte in b"".join(exchange.frames().all()):
        await exchange.connection.chunk(bytes([byte]))
    await exchange.connection.end()


@scenario("crlf", "streams with CR LF line ends")
async def crlf(exchange: ScriptedExchange) -> None:
    if not exchange.request.stream:
        return await ok(exchange)
    return await exchange.stream([frame.replace(b"\n", b"\r\n") for frame in exchange.frames().all()])


# Scenarios in which the connection fails or the response is late.


@scenario("silent", "takes the request and never answers", Fault.READ_TIMEOUT, Fault.TTFT_TIMEOUT, row="6")
async def silent(exchange: ScriptedExchange) -> None:
    await exchange.connection.hold()


@scenario("reset_before_headers", "resets the connection before any byte", Fault.RESET_BEFORE_HEADERS, row="8")
async def reset_before_headers(exchange: ScriptedExchange) -> None:
    exchange.connection.reset()


@scenario("close_before_headers", "closes the connection before any byte", Fault.RESET_BEFORE_HEADERS, row="8")
async def close_before_headers(exchange: ScriptedExchange) -> None:
    exchange.connection.close()


@scenario(
    "reset_mid_body", "resets the connection within the body", Fault.TRUNCATED_BODY, Fault.STREAM_BROKEN, row="9, 44"
)
async def reset_mid_body(exchange: ScriptedExchange) -> None:
    if exchange.request.stream:
        await exchange.stream(_up_to_content(exchange), end=False)
    else:
        await _half(exchange)
    await exchange.connection.wait(exchange.number("after", 0.05))
    exchange.connection.reset()


@scenario(
    "truncated_body", "closes the connection within the body", Fault.TRUNCATED_BODY, Fault.STREAM_BROKEN, row="9, 44"
)
async def truncated_body(exchange: ScriptedExchange) -> None:
    if exchange.request.stream:
        await exchange.stream(_up_to_content(exchange), end=False)
    else:
        await _half(exchange)
    exchange.connection.close()


async def _half(exchange: ScriptedExchange) -> None:
    body = exchange.body()
    await exchange.connection.head(200, {"content-type": JSON, "content-length": str(len(body))})
    await exchange.connection.send(body[: len(body) // 2])


def _up_to_content(exchange: ScriptedExchange) -> list[bytes]:
    frames = exchange.frames()
    return [*frames.head, *frames.content[: max(2, len(frames.content) // 2)]]


@scenario("drip", "sends the body a byte every `seconds` (0.05)", Fault.SLOW_BODY, Fault.TTFT_TIMEOUT, row="37")
async def drip(exchange: ScriptedExchange) -> None:
    body = b"".join(exchange.frames().all()) if exchange.request.stream else exchange.body()
    body = body + b" " * int(exchange.number("bytes", 100_000))
    await exchange.connection.start(200, SSE if exchange.request.stream else JSON)
    for byte in body:
        await exchange.connection.chunk(bytes([byte]))
        if await exchange.connection.wait(exchange.number("seconds", 0.05)):
            return


# Scenarios with status 200 and an invalid body.


def _body(name: str, meaning: str, data: bytes, fault: Fault, row: str, kind: str = JSON) -> None:
    @scenario(name, meaning, fault, row=row)
    async def _(exchange: ScriptedExchange) -> None:
        await exchange.connection.reply(200, data, kind)


HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in to Wi-Fi</title></head><body>Welcome</body></html>"

_body("html_200", "a web page with status 200", HTML, Fault.BAD_CONTENT_TYPE, "10", "text/html; charset=utf-8")
_body("html_as_json", "a web page that calls itself JSON", HTML, Fault.BAD_CONTENT_TYPE, "10")
_body("plain_text_200", "words with status 200", b"It works!", Fault.BAD_CONTENT_TYPE, "10", "text/plain")
_body("bad_json", "broken JSON", b'{"choices": [ {"message": nonsense', Fault.BAD_JSON, "11")
_body("empty_body", "a body of no bytes", b"", Fault.BAD_JSON, "11")
_body("null", "the JSON value null", b"null", Fault.BAD_SHAPE, "12")
_body("list", "a JSON list", b"[1, 2, 3]", Fault.BAD_SHAPE, "12")
_body("other_object", "a JSON object of another kind", b'{"status": "ok"}', Fault.BAD_SHAPE, "12")
# A stream without any bytes counts as an empty stream, not as invalid JSON.
SCENARIOS["empty_body"] = Scenario(
    **{**SCENARIOS["empty_body"].__dict__, "stream": Fault.STREAM_EMPTY, "row": "11, 48"}
)


@scenario("truncated_json", "JSON that ends half way, in good order", Fault.BAD_JSON, row="11")
async def truncated_json(exchange: ScriptedExchange) -> None:
    body = exchange.body()
    await exchange.connection.reply(200, body[: len(body) // 2], JSON)


@scenario("empty_choices", "no candidate in the answer", Fault.EMPTY_CHOICES, row="13", needs=("openai", "gemini"))
async def empty_choices(exchange: ScriptedExchange) -> None:
    await exchange.connection.reply(200, dump(exchange.vendor.empty(exchange.request.model)), JSON)


@scenario("empty_content", "an answer that says nothing", Fault.EMPTY_CONTENT, row="14")
async def empty_content(exchange: ScriptedExchange) -> None:
    await exchange.speak(ReplyText(text=""))


@scenario(
    "failed_generation",
    "stops with `reason` (MALFORMED_RESPONSE) before a word",
    Fault.GENERATION_FAILED,
    row="14",
    needs=("gemini",),
)
async def failed_generation(exchange: ScriptedExchange) -> None:
    reason = exchange.params.get("reason", "MALFORMED_RESPONSE")
    candidate = {"index": 0, "finishReason": reason}
    body = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 4}, "modelVersion": exchange.request.model}
    if exchange.request.stream:
        await exchange.stream([sse(body)])
    else:
        await exchange.connection.reply(200, dump(body), JSON)


@scenario("error_in_200", "status 200 with an error inside: `status` (429)", Fault.HTTP_429, row="15")
async def error_in_200(exchange: ScriptedExchange) -> None:
    status = int(exchange.number("status", 429))
    body = exchange.vendor.error(status, KINDS.get(status, "api_error"), "Too many requests", code=status)
    await exchange.connection.reply(200, dump(body), JSON)


@scenario("huge_body", "`bytes` (64 MiB) of an answer", Fault.TOO_LARGE, row="38")
async def huge_body(exchange: ScriptedExchange) -> None:
    block = b" " * 1024 * 1024
    await exchange.connection.start(200, SSE if exchange.request.stream else JSON)
    await exchange.connection.chunk(b"data: " if exchange.request.stream else b'{"choices": [')
    for _ in range(int(exchange.number("bytes", 64 * 1024 * 1024)) // len(block)):
        if exchange.connection.gone:
            return
        await exchange.connection.chunk(block)
    await exchange.connection.end()


@scenario("gzip_bomb", "a few KiB that unpack to `bytes` (64 MiB)", Fault.TOO_LARGE, row="38")
async def gzip_bomb(exchange: ScriptedExchange) -> None:
    # A value of 31 makes zlib write a gzip header.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b"data: " if exchange.request.stream else b'{"choices": ["')
    for _ in range(int(exchange.number("bytes", 64 * 1024 * 1024)) // 65536):
        packed += packer.compress(b"a" * 65536)
    kind = SSE if exchange.request.stream else JSON
    await exchange.connection.reply(200, packed + packer.flush(), kind, {"content-encoding": "gzip"})


@scenario("gzip", "a whole answer, packed as callers allow it")
async def gzipped(exchange: ScriptedExchange) -> None:
    body = b"".join(exchange.frames().all()) if exchange.request.stream else exchange.body()
    await exchange.connection.reply(
        200, gzip.compress(body), SSE if exchange.request.stream else JSON, {"content-encoding": "gzip"}
    )


@scenario("redirect", "redirects with `status` (302) to `location`", Fault.REDIRECT, row="41")
async def redirect(exchange: ScriptedExchange) -> None:
    # This is the metadata service of cloud machines. Clients must not follow a redirect to it.
    location = exchange.params.get("location", "http://169.254.169.254/latest/meta-data/")
    await exchange.connection.reply(int(exchange.number("status", 302)), b"", JSON, {"location": location})


# Scenarios with an error status.

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}

STATUSES: dict[int, tuple[Fault, str]] = {
    400: (Fault.HTTP_400, "16"),
    401: (Fault.HTTP_401, "19"),
    402: (Fault.HTTP_402, "21"),
    403: (Fault.HTTP_403, "20"),
    404: (Fault.HTTP_404, "22"),
    408: (Fault.HTTP_408, "23"),
    409: (Fault.HTTP_409, "24"),
    413: (Fault.HTTP_413, "25"),
    415: (Fault.HTTP_415, "26"),
    418: (Fault.HTTP_4XX, "36"),
    422: (Fault.HTTP_422, "26"),
    425: (Fault.HTTP_425, "27"),
    429: (Fault.HTTP_429, "28"),
    499: (Fault.HTTP_4XX, "36"),
    500: (Fault.HTTP_500, "32"),
    501: (Fault.HTTP_501, "33"),
    502: (Fault.HTTP_502, "34"),
    503: (Fault.HTTP_503, "34"),
    504: (Fault.HTTP_504, "34"),
    505: (Fault.HTTP_501, "33"),
    507: (Fault.HTTP_5XX, "36"),
    520: (Fault.HTTP_52X, "35"),
    524: (Fault.HTTP_52X, "35"),
    529: (Fault.HTTP_529, "35"),
    600: (Fault.HTTP_OTHER, "36"),
}


def _status(status: int, fault: Fault, row: str) -> None:
    meaning = f"status {status}; `retry_after`, `retry_after_ms`, `in` seconds as an HTTP date, `message`"

    @scenario(f"http_{status}", meaning, fault, row=row)
    async def _(exchange: ScriptedExchange) -> None:
        headers = {}
        if "retry_after" in exchange.params:
            headers["retry-after"] = exchange.params["retry_after"]
        if "retry_after_ms" in exchange.params:
            headers["retry-after-ms"] = exchange.params["retry_after_ms"]
        if "in" in exchange.params:
            headers["retry-after"] = formatdate(exchange.connection.now() + exchange.number("in", 0), usegmt=True)
        message = exchange.params.get("message", f"The lab answers {status}.")
        body = exchange.vendor.error(status, KINDS.get(status, "api_error"), message)
        await exchange.fail(status, body, **headers)


for _code, (_fault, _row) in STATUSES.items():
    _status(_code, _fault, _row)


@scenario("html_503", "a web page with status 503, as proxies send it", Fault.HTTP_503, row="34")
async def html_503(exchange: ScriptedExchange) -> None:
    await exchange.connection.reply(503, HTML.replace(b"Sign in to Wi-Fi", b"503 Service Unavailable"), "text/html")


@scenario("wait", "429 with Retry-After `seconds` (30)", Fault.HTTP_429_WAIT, row="29")
async def wait(exchange: ScriptedExchange) -> None:
    body = exchange.vendor.error(429, "rate_limit_error", "Too many requests")
    await exchange.fail(429, body, retry_after=exchange.params.get("seconds", "30"))


@scenario("nonsense_wait", "429 with a Retry-After that is none, `value` (-1)", Fault.HTTP_429_BAD_HEADER, row="30")
async def nonsense_wait(exchange: ScriptedExchange) -> None:
    body = exchange.vendor.error(429, "rate_limit_error", "Too many requests")
    await exchange.fail(429, body, retry_after=exchange.params.get("value", "-1"))


def _error(
    name: str,
    meaning: str,
    fault: Fault,
    row: str,
    status: int,
    needs: tuple[str, ...],
    body: Callable[[ScriptedExchange], Any],
) -> None:
    @scenario(name, meaning, fault, row=row, needs=needs)
    async def _(exchange: ScriptedExchange) -> None:
        await exchange.fail(int(exchange.number("status", status)), body(exchange))


QUOTA = "You exceeded your current quota, please check your plan and billing details."


def _quota(exchange: ScriptedExchange) -> Any:
    if exchange.request.protocol.startswith("openai"):
        return exchange.vendor.error(429, "insufficient_quota", QUOTA, code="insufficient_quota")
    if exchange.request.protocol == "anthropic":
        return exchange.vendor.error(400, "invalid_request_error", "Your credit balance is too low to access the API.")
    body = exchange.vendor.error(429, "", QUOTA)
    violation = {"quotaMetric": "requests", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
    body["error"]["details"] = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]
    return body


def _gemini_retry(exchange: ScriptedExchange) -> Any:
    body = exchange.vendor.error(429, "", QUOTA)
    seconds = exchange.params.get("seconds", "34")
    body["error"]["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}]
    return body


def _gemini_key(exchange: ScriptedExchange) -> Any:
    body = exchange.vendor.error(400, "", "API key not valid. Please pass a valid API key.")
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    body["error"]["details"] = [{**info, "domain": "googleapis.com"}]
    return body


def _context(exchange: ScriptedExchange) -> Any:
    messages = {
        "openai": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
        "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    }
    message = messages[exchange.request.protocol.removesuffix("-responses")]
    return exchange.vendor.error(
        400, "invalid_request_error", message, code="context_length_exceeded", param="messages"
    )


@scenario(
    "parameter",
    "refuses `param` (`a+b` for several) where the request has it, else answers; without one temperature in any case",
    Fault.UNSUPPORTED_PARAMETER,
    row="16",
)
async def parameter(exchange: ScriptedExchange) -> None:
    named = exchange.params.get("param")
    present = [name for name in named.split("+") if name in exchange.request.names] if named else ["temperature"]
    refused = present[0] if present else None
    await (ok(exchange) if refused is None else exchange.fail(400, _build_refusal(exchange, refused)))


def _build_refusal(exchange: ScriptedExchange, param: str) -> Any:
    messages = {
        "openai": f"Unsupported parameter: '{param}' is not supported with this model.",
        "anthropic": f"{param}: Extra inputs are not permitted",
        "gemini": f"Invalid JSON payload received. Unknown name \"{param}\" at 'generation_config': Cannot find field.",
    }
    message = messages[exchange.request.protocol.removesuffix("-responses")]
    return exchange.vendor.error(400, "invalid_request_error", message, code="unsupported_parameter", param=param)


def _policy(exchange: ScriptedExchange) -> Any:
    message = "The response was blocked by our content policy (content_filter)."
    return exchange.vendor.error(400, "invalid_request_error", message, code="content_filter")


def _capability(exchange: ScriptedExchange) -> Any:
    return exchange.vendor.error(400, "invalid_request_error", "This model does not support image input.")


_error("quota", "the quota or the credit is used up", Fault.HTTP_429_QUOTA, "31", 429, ALL, _quota)
_error("gemini_retry", "429 with the wait in the body", Fault.HTTP_429_WAIT, "29", 429, ("gemini",), _gemini_retry)
_error("gemini_bad_key", "a bad key as status 400", Fault.HTTP_401, "19", 400, ("gemini",), _gemini_key)
_error("context_length", "the input is too long", Fault.CONTEXT_LENGTH, "17", 400, ALL, _context)
_error("policy", "refuses the content", Fault.CONTENT_POLICY, "18", 400, ALL, _policy)
_error("capability", "cannot read images, in `status` (400)", Fault.CAPABILITY_MISMATCH, "26", 400, ALL, _capability)


# Scenarios with an invalid stream. Unless stated otherwise, a plain call gets a valid answer.


def _stream(name: str, meaning: str, fault: Fault | None, row: str) -> Callable[[Play], Play]:
    def enter(act: Play) -> Play:
        @scenario(name, meaning, None, fault, row=row)
        async def _(exchange: ScriptedExchange) -> None:
            await (act if exchange.request.stream else ok)(exchange)

        return act

    return enter


@_stream("error_event_first", "an error event before content: `status` (529)", Fault.HTTP_529, "40")
async def error_event_first(exchange: ScriptedExchange) -> None:
    status = int(exchange.number("status", 529))
    event = exchange.vendor.error_event(status, KINDS.get(status, "api_error"), "Overloaded")
    await exchange.stream([*exchange.frames().head, event])


@_stream("error_event_mid", "an error event after content", Fault.STREAM_BROKEN, "44")
async def error_event_mid(exchange: ScriptedExchange) -> None:
    event = exchange.vendor.error_event(500, "api_error", "Something broke")
    await exchange.stream([*_up_to_content(exchange), event])


@_stream("stream_empty", "a stream that ends with nothing sent", Fault.STREAM_EMPTY, "48")
async def stream_empty(exchange: ScriptedExchange) -> None:
    await exchange.stream(exchange.frames().head)


@_stream("no_finish", "a stream that ends in order without saying why", Fault.STREAM_TRUNCATED, "47")
async def no_finish(exchange: ScriptedExchange) -> None:
    frames = exchange.frames()
    await exchange.stream([*frames.head, *frames.content])


@_stream("no_done", "a stream without its end marker", None, "46")
async def no_done(exchange: ScriptedExchange) -> None:
    frames = exchange.frames()
    await exchange.stream([*frames.head, *frames.content, *frames.finish])


@_stream("sse_as_text", "a good stream that calls itself plain text", None, "46")
async def sse_as_text(exchange: ScriptedExchange) -> None:
    await exchange.connection.start(200, "text/plain; charset=utf-8")
    await exchange.stream(exchange.frames().all())


@_stream("held_open", "a stream without its end marker, and the connection stays open", None, "46")
async def held_open(exchange: ScriptedExchange) -> None:
    await exchange.stream(_without_end_marker(exchange), end=False)
    await exchange.connection.hold()


@_stream("reset_after_finish", "a stream without its end marker, then a reset", None, "46")
async def reset_after_finish(exchange: ScriptedExchange) -> None:
    await exchange.stream(_without_end_marker(exchange), end=False)
    await exchange.connection.wait(exchange.number("after", 0.05))
    exchange.connection.reset()


def _without_end_marker(exchange: ScriptedExchange) -> list[bytes]:
    """Return the frames without the ones that end the stream (`[DONE]`, `message_stop`, usage).

    Some hosts omit those.
    """
    frames = exchange.frames()
    return [*frames.head, *frames.content, *frames.finish[:1]]


@_stream("reset_before_content", "a stream reset before any content", Fault.RESET_BEFORE_HEADERS, "8, 48")
async def reset_before_content(exchange: ScriptedExchange) -> None:
    await exchange.stream([*exchange.frames().head, b": waking up\n\n"], end=False)
    await exchange.connection.wait(exchange.number("after", 0.05))
    exchange.connection.reset()


@_stream("stall", "content, then silence on an open connection", Fault.STREAM_STALL, "43")
async def stall(exchange: ScriptedExchange) -> None:
    await exchange.stream(_up_to_content(exchange), end=False)
    await exchange.connection.hold()


@_stream("stall_first", "headers, then silence", Fault.TTFT_TIMEOUT, "42")
async def stall_first(exchange: ScriptedExchange) -> None:
    await exchange.stream(exchange.frames().head, end=False)
    await exchange.connection.hold()


@_stream("comments_first", "`count` (5) keep-alive comments every `seconds` (0.05), then the answer", None, "42")
async def comments_first(exchange: ScriptedExchange) -> None:
    await exchange.connection.start(200, SSE)
    for _ in range(int(exchange.number("count", 5))):
        await exchange.connection.chunk(b": PROCESSING\n\n")
        if await exchange.connection.wait(exchange.number("seconds", 0.05)):
            return
    await exchange.stream(exchange.frames().all())


@_stream("comments_forever", "keep-alive comments every `seconds` (0.05), never content", Fault.TTFT_TIMEOUT, "42")
async def comments_forever(exchange: ScriptedExchange) -> None:
    await exchange.connection.start(200, SSE)
    await _comments(exchange)


@_stream("comments_after", "content, then keep-alive comments only", Fault.STREAM_STALL, "43")
async def comments_after(exchange: ScriptedExchange) -> None:
    await exchange.stream(_up_to_content(exchange), end=False)
    await _comments(exchange)


async def _comments(exchange: ScriptedExchange) -> None:
    while not exchange.connection.gone:
        await exchange.connection.chunk(b": keep-alive\n\n")
        await exchange.connection.wait(exchange.number("seconds", 0.05))


@_stream("bad_event", "one malformed event within a good stream", None, "45")
async def bad_event(exchange: ScriptedExchange) -> None:
    frames = exchange.frames()
    await exchange.stream(
        [*frames.head, exchange.vendor.bad_events()[0], *frames.content, *frames.finish, *frames.done]
    )


@_stream("bad_events", "three malformed events after content", Fault.STREAM_BROKEN, "45")
async def bad_events(exchange: ScriptedExchange) -> None:
    frames = exchange.frames()
    await exchange.stream([*_up_to_content(exchange), *exchange.vendor.bad_events(), *frames.finish, *frames.done])


@_stream("giant_event", "one event of `bytes` (64 MiB)", Fault.TOO_LARGE, "38")
async def giant_event(exchange: ScriptedExchange) -> None:
    await huge_body(exchange)


@_stream("slow_stream", "a good stream with `seconds` (0.05) between events", None, "43")
async def slow_stream(exchange: ScriptedExchange) -> None:
    await exchange.connection.start(200, SSE)
    for frame in exchange.frames().all():
        await exchange.connection.chunk(frame)
        if await exchange.connection.wait(exchange.number("seconds", 0.05)):
            return
    await exchange.connection.end()


@_stream("endless", "content every `seconds` (0.05) until the caller goes", Fault.DEADLINE, "7")
async def endless(exchange: ScriptedExchange) -> None:
    frames = exchange.frames()
    await exchange.stream(frames.head, end=False)
    # Anthropic's API and the Responses API announce a content block before its first delta.
    opening = frames.content[: {"anthropic": 1, "openai-responses": 2}.get(exchange.request.protocol, 0)]
    more = frames.content[len(opening)]
    for frame in opening:
        await exchange.connection.chunk(frame)
    while not exchange.connection.gone:
        await exchange.connection.chunk(more)
        await exchange.connection.wait(exchange.number("seconds", 0.05))


async def perform(step: Step, connection: Connection, request: ReceivedRequest) -> None:
    """Run the step's scenario on a connection. It ends early if the client disconnects."""
    try:
        await SCENARIOS[step.name].act(ScriptedExchange(connection, request, step.params))
    except (ConnectionError, asyncio.IncompleteReadError):
        connection.gone_away()
