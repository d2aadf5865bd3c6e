"""Table of the operations beside chat that pass through to providers of OpenAI's protocol.

A row is all that is known of an operation: where it is called, the form of its request and its answer, where both hold
files, and whether another model may answer in place of the first. The model is always in the field `model`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capabilities.core.message import Blob
from capabilities.core.values import value_class
from capabilities.core.wire import BodyPiece, UpstreamRequest

# The data of the event that closes a stream.
DONE = "[DONE]"


class BodyShape(StrEnum):
    """How a request is sent."""

    JSON = "json"
    FORM = "form"


class AnswerShape(StrEnum):
    """How an answer is sent: JSON, a transcript (JSON or plain text, as requested), or the bytes of a sound."""

    JSON = "json"
    TRANSCRIPT = "transcript"
    SOUND = "sound"


@dataclass(frozen=True, slots=True)
class Operation:
    """One row.

    `name` is what the log calls it, `path` follows a provider's base URL and `/v1`. A JSON answer holds its result
    under one of the names in `results`; a list may be empty only with `may_be_empty`. `files` are the fields of a form
    that hold files; the first, or the first with `[]`, is required. `stream` is the field by which a caller asks for
    events, and its value then. A `last_event` ends them; if it is `DONE`, events have no names, and each choice ends
    with its `finish_reason`.
    """

    name: str
    path: str
    bodies: tuple[BodyShape, ...] = (BodyShape.JSON,)
    answer: AnswerShape = AnswerShape.JSON
    results: tuple[str, ...] = ("data",)
    may_be_empty: bool = False
    files: tuple[str, ...] = ()
    same_model: bool = False
    stream: tuple[str, str] = ("", "")
    last_event: str = ""

    def is_streamed(self, value: object) -> bool:
        """Return whether that value of the field asks for events."""
        return bool(self.last_event) and str(value).lower() == self.stream[1]


FORM, JSON = BodyShape.FORM, BodyShape.JSON
STREAM = ("stream", "true")

OPERATIONS: tuple[Operation, ...] = (
    # Vectors of two models do not mix, so only the same model at another provider may be the fallback.
    Operation("embeddings", "/embeddings", same_model=True),
    Operation("completions", "/completions", results=("choices",), stream=STREAM, last_event=DONE),
    Operation("moderations", "/moderations", results=("results",)),
    Operation("rerank", "/rerank", results=("results", "data"), may_be_empty=True),
    Operation(
        "transcriptions",
        "/audio/transcriptions",
        bodies=(FORM,),
        answer=AnswerShape.TRANSCRIPT,
        results=("text",),
        files=("file",),
        stream=STREAM,
        last_event="transcript.text.done",
    ),
    Operation(
        "translations",
        "/audio/translations",
        bodies=(FORM,),
        answer=AnswerShape.TRANSCRIPT,
        results=("text",),
        files=("file",),
    ),
    Operation(
        "speech",
        "/audio/speech",
        answer=AnswerShape.SOUND,
        stream=("stream_format", "sse"),
        last_event="speech.audio.done",
    ),
    Operation("images", "/images/generations", stream=STREAM, last_event="image_generation.completed"),
    Operation(
        "image-edits",
        "/images/edits",
        bodies=(FORM, JSON),
        files=("image", "image[]", "mask"),
        stream=STREAM,
        last_event="image_edit.completed",
    ),
    Operation("image-variations", "/images/variations", bodies=(FORM,), files=("image",)),
)


# A request as `multipart/form-data`: fields as they came, files in blocks while they are sent.

# How browsers escape what would end a name.
ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


@dataclass(frozen=True, slots=True)
class FormFile:
    """A file in a field of a form."""

    filename: str
    mime_type: str
    blob: Blob


# A form's fields in order, each with all its values.
FormFields = Mapping[str, tuple[str | FormFile, ...]]


@value_class
class FormRequest(UpstreamRequest):
    """One HTTP call whose payload, `FormFields`, is sent as a form; `boundary` is in none of its values."""

    boundary: str = ""

    def pieces(self) -> tuple[BodyPiece, ...]:
        return tuple(self._pieces())

    def _pieces(self) -> Iterator[BodyPiece]:
        for name, values in self.payload.items():
            for value in values:
                yield _head(self.boundary, name, value)
                yield value.blob if isinstance(value, FormFile) else value.encode()
                yield b"\r\n"
        yield f"--{self.boundary}--\r\n".encode()

    def elide(self) -> Any:
        return {name: [_elided(value) for value in values] for name, values in self.payload.items()}


def _head(boundary: str, name: str, value: str | FormFile) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name.translate(ESCAPES)}"'
    if isinstance(value, FormFile):
        head += f'; filename="{value.filename.translate(ESCAPES)}"\r\nContent-Type: {value.mime_type}'
    return f"{head}\r\n\r\n".encode()


def _elided(value: str | FormFile) -> str:
    return f"<{value.blob.size} bytes>" if isinstance(value, FormFile) else value
