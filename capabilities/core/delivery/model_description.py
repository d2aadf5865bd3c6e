"""Another model's description of a file, for a model that cannot read the file.

This module calls no model. Descriptions are passed to deliveries as values, so that these are pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from capabilities.core.delivery.obstacles import Reason, ReasonCode
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.message import FilePart


class DescriptionState(StrEnum):
    """Whether a description by a model exists. The value appears in the `x-routing-adaptation` header."""

    BY_MODEL = "by_model"
    FAILED = "describer_failed"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class DescriberCall:
    """The call that produced a description, for the log. Milliseconds count from the request's start."""

    request_id: str
    started_ms: float
    duration_ms: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model's description of a file, if available.

    `text` is the marked block, or empty. `describer` is the model that wrote it. `call` is set if the current request
    made the call. `fault` is the reason why there is no text.
    """

    state: DescriptionState
    describer: str
    text: str = ""
    call: DescriberCall | None = None
    fault: str = ""


FindDescription = Callable[[FilePart, str, int], ModelDescription]
"""Function that returns the available description by file, describing model, and index of the file's message."""


def find_no_description(file: FilePart, describer: str, message: int) -> ModelDescription:
    return ModelDescription(DescriptionState.NOT_ASKED, describer)


NOT_DESCRIBABLE = frozenset(
    {
        *(ReasonCode.UNREADABLE, ReasonCode.EMPTY, ReasonCode.LOCKED, ReasonCode.DAMAGED),
        *(ReasonCode.TOO_MANY_FILES, ReasonCode.TOO_MUCH_OF_A_KIND, ReasonCode.REQUEST_FULL),
    }
)
"""Reasons for which no model is asked: the file has no content, or the reader could read it but the request has no room
for it."""


def find_describer(file: FilePart, reader: Reader, reason: Reason) -> str:
    """Return the model that describes a file which cannot be delivered for this reason, or "" if none does."""
    if ContentPolicy.DESCRIBER not in reader.policies or reason.code in NOT_DESCRIBABLE:
        return ""
    # A describing model needs the bytes. For an empty file, or a URL without bytes, only metadata is sent.
    if file.content is None or file.unreadable or not file.size:
        return ""
    return reader.describer_for(file)


def without_describer(reader: Reader) -> Reader:
    if ContentPolicy.DESCRIBER not in reader.policies:
        return reader
    return replace(reader, policies=reader.policies - {ContentPolicy.DESCRIBER})
