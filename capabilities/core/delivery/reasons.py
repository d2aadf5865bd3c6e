"""Why a file reaches a model the way it does: a closed list of reasons, each with its facts and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.worded import Worded, worded


class ReasonCode(StrEnum):
    """Everything that can decide a delivery; the first block is a yes, the second says what stands in the way.

    The last is only about having a file described by another model.
    """

    FITS = "fits"
    READABLE_TEXT = "readable_text"
    LONG_TEXT = "long_text"

    NO_CAPABILITY = "no_capability"
    NO_SLOT = "no_slot"
    ROLE = "role"
    TOOL_RESULT = "tool_result"
    URL = "url"
    TYPE = "type"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_WIDE = "too_wide"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MANY_FILES = "too_many_files"
    TOO_MUCH_OF_A_KIND = "too_much_of_a_kind"
    REQUEST_FULL = "request_full"

    UNREADABLE = "unreadable"
    NO_TEXT_FOUND = "no_text_found"
    NOT_CONVERTED = "not_converted"

    TOO_LONG = "too_long"
    LOCKED = "locked"
    NO_DESCRIBER = "no_describer"


SENTENCES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.FITS: worded("The model supports %(capability)s and accepts %(mime_type)s."),
        ReasonCode.READABLE_TEXT: worded("Every model reads text."),
        ReasonCode.LONG_TEXT: worded(
            "Every model reads text. This one has %(actual)s characters, more than %(limit)s, and is cut."
        ),
        ReasonCode.NO_CAPABILITY: worded("The model does not support %(capability)s."),
        ReasonCode.NO_SLOT: worded("The protocol %(protocol)s cannot carry content of kind %(kind)s."),
        ReasonCode.ROLE: worded("A message with the role %(role)s cannot contain files."),
        ReasonCode.TOOL_RESULT: worded("The protocol %(protocol)s does not accept %(mime_type)s in a tool result."),
        ReasonCode.URL: worded("Only the file's URL is known, and the protocol %(protocol)s does not accept URLs."),
        ReasonCode.TYPE: worded("%(slot)s does not accept %(mime_type)s."),
        ReasonCode.EMPTY: worded("The file is empty."),
        ReasonCode.TOO_LARGE: worded("The file has %(actual)s bytes; the limit is %(limit)s."),
        ReasonCode.TOO_WIDE: worded("The image's longer side has %(actual)s pixels; the limit is %(limit)s."),
        ReasonCode.TOO_MANY_PAGES: worded("The document has %(actual)s pages; the limit is %(limit)s."),
        ReasonCode.TOO_MANY_FILES: worded(
            "With this file, the number of files for %(slot)s would be %(actual)s; the limit is %(limit)s."
        ),
        ReasonCode.TOO_MUCH_OF_A_KIND: worded(
            "With this file, the files for %(slot)s would total %(actual)s bytes; the limit is %(limit)s."
        ),
        ReasonCode.REQUEST_FULL: worded(
            "With this file, the request would have %(actual)s bytes; the limit is %(limit)s."
        ),
        ReasonCode.UNREADABLE: worded("The file's content cannot be read (%(problem)s)."),
        ReasonCode.NO_TEXT_FOUND: worded("No text could be extracted from this %(mime_type)s file."),
        ReasonCode.NOT_CONVERTED: worded("This %(mime_type)s file could not be converted."),
        ReasonCode.TOO_LONG: worded(
            "The recording is %(actual)s seconds long; the limit for descriptions is %(limit)s."
        ),
        ReasonCode.LOCKED: worded("The file is password-protected."),
        ReasonCode.NO_DESCRIBER: worded(
            "The route describe is missing or disabled, or none of its models can be called."
        ),
    }
)
"""English sentences with named places; pages translate them and fill in `Reason.facts`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason and its facts: the words that stand in its sentence (bytes and pixels as plain numbers)."""

    code: ReasonCode
    facts: Mapping[str, str | int] = field(default_factory=dict)

    def sentence(self) -> Worded:
        """The reason as one sentence."""
        return Worded(SENTENCES[self.code], self.facts)


def because(code: ReasonCode, **facts: str | int) -> Reason:
    """A reason with these facts."""
    return Reason(code, MappingProxyType(facts))
