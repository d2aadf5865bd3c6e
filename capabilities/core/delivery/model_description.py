"""The rung above the bare facts: another model's words about a file, for a model that cannot read it.

What that model said comes in as a value, so a delivery stays a pure function; nobody is asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from capabilities.core.delivery.obstacles import Reason, ReasonCode
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.message import FilePart


class DescriptionState(StrEnum):
    """What is there of a model's description; the word stands in the `x-routing-adaptation` header."""

    BY_MODEL = "by_model"
    FAILED = "describer_failed"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class DescriberCall:
    """The call that brought a description about, as the log names it; milliseconds from the request's beginning."""

    request_id: str
    started_ms: float
    duration_ms: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model's description of a file as it is known by now.

    `text` is the marked block with its words, empty where there are none; `describer` who said them. `call` is set
    where this request had it made, `fault` says why there are no words.
    """

    state: DescriptionState
    describer: str
    text: str = ""
    call: DescriberCall | None = None
    fault: str = ""


FindDescription = Callable[[FilePart, str, int], ModelDescription]
"""(file, who would describe it, index of its message) → what is known of that description."""


def find_no_description(file: FilePart, describer: str, message: int) -> ModelDescription:
    """Nobody was asked: for callers that know no descriptions."""
    return ModelDescription(DescriptionState.NOT_ASKED, describer)


NOT_FOR_A_DESCRIBER = frozenset(
    {
        *(ReasonCode.UNREADABLE, ReasonCode.EMPTY),
        *(ReasonCode.TOO_MANY_FILES, ReasonCode.TOO_MUCH_OF_A_KIND, ReasonCode.REQUEST_FULL),
    }
)
"""Reasons with which nobody is asked: there is nothing to see, or the reader could see it and lacks the room."""


def find_describer(file: FilePart, reader: Reader, reason: Reason) -> str:
    """Who describes a file that would end as its facts for this reason; empty where nobody does."""
    if ContentPolicy.DESCRIBER not in reader.policies or reason.code in NOT_FOR_A_DESCRIBER:
        return ""
    if file.content is None or file.unreadable or not file.size:
        return ""
    return reader.describer_for(file)


def without_describer(reader: Reader) -> Reader:
    """The reader, for whom no model is to describe anything."""
    if ContentPolicy.DESCRIBER not in reader.policies:
        return reader
    return replace(reader, policies=reader.policies - {ContentPolicy.DESCRIBER})
