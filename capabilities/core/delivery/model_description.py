"""Descriptions of files by another model, for models that cannot read the files.

This module calls no model: descriptions are passed in as values, which keeps the delivery functions pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from capabilities.core.delivery.obstacles import Reason, ReasonCode
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.message import FilePart


class DescriptionState(StrEnum):
    """Whether another model has described a file. The value appears in the `x-routing-adaptation` header."""

    BY_MODEL = "by_model"
    FAILED = "describer_failed"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class DescriberCall:
    """The model call that produced a description, as logged. `started_ms` is relative to the start of the request."""

    request_id: str
    started_ms: float
    duration_ms: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Another model's description of a file, if available.

    `text` is the description, marked as a quotation from the model `describer`, or empty. `call` is set if the current
    request made the call. `fault` is the reason why the description failed.
    """

    state: DescriptionState
    describer: str
    text: str = ""
    call: DescriberCall | None = None
    fault: str = ""


FindDescription = Callable[[FilePart, str, int], ModelDescription]
"""Function that returns the description of a file. Its arguments are the file, the describing model, and the index of
the file's message."""


def find_no_description(file: FilePart, describer: str, message: int) -> ModelDescription:
    return ModelDescription(DescriptionState.NOT_ASKED, describer)


NOT_DESCRIBABLE = frozenset(
    {
        *(ReasonCode.UNREADABLE, ReasonCode.EMPTY, ReasonCode.LOCKED, ReasonCode.DAMAGED),
        *(ReasonCode.TOO_MANY_FILES, ReasonCode.TOO_MUCH_OF_A_KIND, ReasonCode.REQUEST_FULL),
    }
)
"""Reasons that rule out a description by another model: the file has no readable content, or the reader could read it
but the request has no room for it."""


def find_describer(file: FilePart, reader: Reader, reason: Reason) -> str:
    """Return the model that should describe a file that cannot be delivered for this reason, or "" if there is none."""
    if ContentPolicy.DESCRIBER not in reader.policies or reason.code in NOT_DESCRIBABLE:
        return ""
    # A model needs the bytes to describe a file. For an empty file, or a URL without bytes, only metadata is sent.
    if file.content is None or file.unreadable or not file.size:
        return ""
    return reader.describer_for(file)


def without_describer(reader: Reader) -> Reader:
    if ContentPolicy.DESCRIBER not in reader.policies:
        return reader
    return replace(reader, policies=reader.policies - {ContentPolicy.DESCRIBER})
