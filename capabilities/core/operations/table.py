"""A table of the operations other than chat that are passed on to providers with OpenAI's protocol.

Each row defines an operation: its path, the formats of its request and response, the fields that hold files, and
whether the fallback may be a different model. The model's name is always in the field `model`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capabilities.core.message import Blob
from capabilities.core.values import value_class
from capabilities.core.wire import BodyPiece, UpstreamRequest

# Data of the event that ends a stream.
DONE = "[DONE]"


class BodyShape(StrEnum):
    """The format of a request body."""

    JSON = "json"
    FORM = "form"


class AnswerShape(StrEnum):
    """The format of a response: JSON, a transcript (JSON or plain text, as requested), or audio bytes."""

    JSON = "json"
    TRANSCRIPT = "transcript"
    SOUND = "sound"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is passed on to providers. `name` is its name in the request log.

    `path` is appended to `/v1` on this server, and to the base URL at the provider. `results` are the possible names of
    the field with the result in a JSON response. The result may be an empty list only if `may_be_empty` is set. `files`
    are the form fields that hold files. The first one is required, with or without `[]` after its name. `stream` is the
    name and value of the field with which a caller requests a stream. `last_event` is the type of the event that ends
    the stream. If it is `DONE`, events have no type, and each choice ends with its `finish_reason`.
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
        return bool(self.last_event) and str(value).lower() == self.stream[1]


FORM, JSON = BodyShape.FORM, BodyShape.JSON
STREAM = ("stream", "true")

OPERATIONS: tuple[Operation, ...] = (
    # Vectors from different models are not comparable, so the fallback must be the same model at another provider.
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


# Requests as `multipart/form-data`. Their fields are unchanged, and files are read in blocks while they are sent.

# As browsers do, escape characters that would end a quoted name.
ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


@dataclass(frozen=True, slots=True)
class FormFile:
    filename: str
    mime_type: str
    blob: Blob


# The fields of a form in order. Each of them has one or more values.
FormFields = Mapping[str, tuple[str | FormFile, ...]]


@value_class
class FormRequest(UpstreamRequest):
    """An HTTP request whose payload, `FormFields`, is sent as a form. `boundary` must not occur in any value."""

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
