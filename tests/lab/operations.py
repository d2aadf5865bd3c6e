"""OpenAI's endpoints other than chat: completions, moderations, embeddings, rerank, transcription, speech, images."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from openai.types.moderation import Categories

from tests.lab.received_requests import Media, ReceivedRequest
from tests.lab.recordings import PICTURE
from tests.lab.shapes import Frames, OpenAI, ReplyText, pieces, sse

SOUND = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(range(256))
"""A fake MP3 file: an ID3 tag, followed by bytes that are not valid UTF-8."""
PATHS = {
    "/completions": "completions",
    "/moderations": "moderations",
    "/embeddings": "embeddings",
    "/rerank": "rerank",
    "/audio/transcriptions": "transcriptions",
    "/audio/translations": "transcriptions",
    "/audio/speech": "speech",
    "/images/generations": "images",
    "/images/edits": "edits",
    "/images/variations": "edits",
}
CHAT = "/chat/completions"
NEEDED = {"embeddings": "input", "rerank": "query", "speech": "input", "images": "prompt"}
NEEDED |= {"completions": "prompt", "moderations": "input"}
"""Maps each operation to its required field."""


def operation_at(path: str) -> str:
    """Return the operation at the end of the path, or an empty string if there is none."""
    plain = path.split("?")[0]
    return next((name for end, name in PATHS.items() if plain.endswith(end) and not plain.endswith(CHAT)), "")


def read_operation(operation: str, body: bytes) -> ReceivedRequest:
    """Parse the body as JSON or as a multipart form. A form's fields become lists, and its files become media."""
    request = ReceivedRequest("openai", operation=operation)
    try:
        request.data = _form(body, request) if body[:2] == b"--" else json.loads(body)
    except (ValueError, AttributeError, TypeError):
        request.problem = "the body is neither a form nor JSON"
        return request
    request.names = frozenset(request.data)
    request.model = str(_first(request.data.get("model", "")))
    request.stream = (
        str(_first(request.data.get("stream"))).lower() == "true" or request.data.get("stream_format") == "sse"
    )
    required = NEEDED.get(operation)
    text = _first(request.data.get(required or "prompt", ""))
    request.turns = [("user", text if isinstance(text, str) else json.dumps(text))]
    if required and required not in request.data:
        request.problem = f"{required} is required"
    elif operation in ("transcriptions", "edits") and not request.media:
        request.problem = "a file is required"
    return request


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _form(body: bytes, request: ReceivedRequest) -> dict[str, Any]:
    boundary = body[2 : body.index(b"\r\n")]
    head = b"Content-Type: multipart/form-data; boundary=" + boundary + b"\r\n\r\n"
    fields: dict[str, Any] = {}
    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        filename = part.get_filename()
        if filename is not None:
            request.media.append(Media(name, part.get_content_type(), data))
        fields.setdefault(name, []).append(data.decode() if filename is None else filename)
    return fields


def vector(text: str) -> list[float]:
    """Return an embedding of three numbers that single precision represents exactly.

    Equal texts get equal numbers, and different texts usually get different ones.
    """
    return [len(text) / 8, sum(text.encode()) % 256 / 8, -0.5]


@dataclass
class _Operation(OpenAI):
    """Base class of the simulated operations. Their errors have the same format as those of chat completions."""

    request: ReceivedRequest
    kind = "application/json"

    def bad_events(self) -> list[bytes]:
        return [b'data: {"type":\n\n', b"data: nonsense\n\n", b"data: [1]\n\n"]


class Completions(_Operation):
    """Returns `n` choices for each prompt. A stream contains usage only if the request asks for it."""

    def plain(self, reply: ReplyText, model: str) -> Any:
        choices = [self._choice(index, reply.text, reply.finish) for index in range(self._count)]
        return {**self._envelope(model, "text_completion"), "choices": choices, "usage": self._usage(reply)}

    def frames(self, reply: ReplyText, model: str) -> Frames:
        indexes = range(self._count)
        includes_usage = (self.request.data.get("stream_options") or {}).get("include_usage")
        usage = {**self._envelope(model, "text_completion"), "choices": [], "usage": self._usage(reply)}
        return Frames(
            content=[self._piece(model, index, piece) for piece in pieces(reply.text) for index in indexes],
            finish=[
                *(self._piece(model, index, "", reply.finish) for index in indexes),
                *([sse(usage)] if includes_usage else []),
            ],
            done=[b"data: [DONE]\n\n"],
        )

    def empty(self, model: str) -> Any:
        return {**self._envelope(model, "text_completion"), "choices": []}

    @property
    def _count(self) -> int:
        prompt = self.request.data["prompt"]
        return int(self.request.data.get("n", 1)) * (len(prompt) if isinstance(prompt, list) else 1)

    def _choice(self, index: int, text: str, finish: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}

    def _piece(self, model: str, index: int, text: str, finish: str | None = None) -> bytes:
        return sse({**self._envelope(model, "text_completion"), "choices": [self._choice(index, text, finish)]})


class Moderations(_Operation):
    """Flags a text that contains the word `harm` as harassment, and flags nothing else."""

    def plain(self, reply: ReplyText, model: str) -> Any:
        inputs = self.request.data["input"]
        results = [self._result("harm" in str(text)) for text in (inputs if isinstance(inputs, list) else [inputs])]
        return {"id": "modr-lab1", "model": model, "results": results}

    def empty(self, model: str) -> Any:
        return {"id": "modr-lab1", "model": model, "results": []}

    def _result(self, flagged: bool) -> dict[str, Any]:
        names = [field.alias or name for name, field in Categories.model_fields.items()]
        categories = {name: flagged and name == "harassment" for name in names}
        scores = {name: 0.9 if is_found else 0.1 for name, is_found in categories.items()}
        types = {name: ["text"] for name in names}
        applied = {"category_scores": scores, "category_applied_input_types": types}
        return {"flagged": flagged, "categories": categories, **applied}


class Embeddings(_Operation):
    def plain(self, reply: ReplyText, model: str) -> Any:
        inputs = self.request.data["input"]
        texts = inputs if isinstance(inputs, list) else [inputs]
        rows = [self._row(index, vector(str(text))) for index, text in enumerate(texts)]
        return {"object": "list", "data": rows, "model": model, "usage": {"prompt_tokens": 9, "total_tokens": 9}}

    def empty(self, model: str) -> Any:
        return {"object": "list", "data": [], "model": model}

    def _row(self, index: int, numbers: list[float]) -> dict[str, Any]:
        packed = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        as_text = self.request.data.get("encoding_format") == "base64"
        return {"object": "embedding", "index": index, "embedding": packed if as_text else numbers}


class Rerank(_Operation):
    def plain(self, reply: ReplyText, model: str) -> Any:
        ranks = [
            {"index": index, "relevance_score": 1 / (index + 1)}
            for index, _ in enumerate(self.request.data["documents"])
        ]
        return {"id": "rerank-lab1", "model": model, "results": ranks, "usage": {"total_tokens": 21}}

    def empty(self, model: str) -> Any:
        return {"model": model, "results": []}


class Transcriptions(_Operation):
    counted = {"type": "tokens", "input_tokens": 14, "output_tokens": 5, "total_tokens": 19}
    counted |= {"input_token_details": {"text_tokens": 2, "audio_tokens": 12}}

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "text/plain; charset=utf-8" if self._format in ("text", "srt", "vtt") else "application/json"

    @property
    def _format(self) -> str:
        return str(_first(self.request.data.get("response_format", "json")))

    def plain(self, reply: ReplyText, model: str) -> Any:
        if self.kind.startswith("text/"):
            return f"{reply.text}\n".encode()
        return {"text": reply.text, "usage": self.counted}

    def frames(self, reply: ReplyText, model: str) -> Frames:
        done = {"type": "transcript.text.done", "text": reply.text, "usage": self.counted}
        return Frames(
            content=[_event({"type": "transcript.text.delta", "delta": piece}) for piece in pieces(reply.text)],
            finish=[_event(done)],
        )


class Speech(_Operation):
    kind = "audio/mpeg"

    def plain(self, reply: ReplyText, model: str) -> Any:
        return SOUND

    def frames(self, reply: ReplyText, model: str) -> Frames:
        parts = [base64.b64encode(SOUND[at : at + 100]).decode() for at in range(0, len(SOUND), 100)]
        usage = {"input_tokens": 6, "output_tokens": 30, "total_tokens": 36}
        return Frames(
            content=[_event({"type": "speech.audio.delta", "audio": part}) for part in parts],
            finish=[_event({"type": "speech.audio.done", "usage": usage})],
        )


class Images(_Operation):
    prefix = "image_generation"
    counted = {"input_tokens": 4, "output_tokens": 40, "total_tokens": 44}
    counted |= {"input_tokens_details": {"text_tokens": 3, "image_tokens": 1}}  # type: ignore[dict-item]

    def plain(self, reply: ReplyText, model: str) -> Any:
        picture = base64.b64encode(PICTURE).decode()
        by_url = _first(self.request.data.get("response_format")) == "url"
        image = {"url": "https://images.example/1.png?signature=s"} if by_url else {"b64_json": picture}
        count = int(_first(self.request.data.get("n", 1)))
        return {"created": 1_790_000_000, "data": [image] * count, "output_format": "png", "usage": self.counted}

    def empty(self, model: str) -> Any:
        return {"created": 1_790_000_000, "data": []}

    def frames(self, reply: ReplyText, model: str) -> Frames:
        picture = base64.b64encode(PICTURE).decode()
        partial = {"type": f"{self.prefix}.partial_image", "b64_json": picture, "partial_image_index": 0}
        done = {"type": f"{self.prefix}.completed", "b64_json": picture, "output_format": "png", "usage": self.counted}
        count = int(_first(self.request.data.get("n", 1)))
        return Frames(content=[_event(partial)], finish=[_event(done)] * count)


class Edits(Images):
    prefix = "image_edit"


def _event(value: dict[str, Any]) -> bytes:
    return sse(value, value["type"])


OPERATIONS: dict[str, Callable[[ReceivedRequest], _Operation]] = {
    "completions": Completions,
    "moderations": Moderations,
    "embeddings": Embeddings,
    "rerank": Rerank,
    "transcriptions": Transcriptions,
    "speech": Speech,
    "images": Images,
    "edits": Edits,
}
"""Maps each operation to the class that simulates it."""
