"""The operations beside chat that pass through to providers which speak OpenAI's protocol; one row each.

A row is all that is known of an operation: where it is called, how its request and its answer look, where files stand
in both, and whether another model may answer in place of the first. The model stands in the field `model` everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DONE = "[DONE]"
"""The data of an event that says goodbye."""


class BodyShape(StrEnum):
    """How a request comes."""

    JSON = "json"
    FORM = "form"


class AnswerShape(StrEnum):
    """How an answer comes: JSON, a transcript (JSON or plain text, as was asked for), or the bytes of a sound."""

    JSON = "json"
    TRANSCRIPT = "transcript"
    SOUND = "sound"


@dataclass(frozen=True, slots=True)
class Operation:
    """One row. `name` is what the log calls it, `path` stands behind a provider's base URL and behind `/v1`.

    `results` are the names under one of which a JSON answer holds its result, which may be an empty list only where
    `may_be_empty`. `files` are the fields of a form that hold files, the first of which, or the first with `[]`, must
    be there. `stream` is the field by which a caller asks for events, and its value then; a `last_event` ends them,
    or `DONE` where events have no names: each choice ends with its `finish_reason`.
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
        """Whether that value of the field asks for events."""
        return bool(self.last_event) and str(value).lower() == self.stream[1]


FORM, JSON = BodyShape.FORM, BodyShape.JSON
STREAM = ("stream", "true")

OPERATIONS: tuple[Operation, ...] = (
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
"""Vectors of two models do not mix, so only the same model of another provider follows for embeddings."""
