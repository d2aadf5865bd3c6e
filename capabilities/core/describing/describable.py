"""Decide whether a model can describe a file for another model, and estimate how many tokens this takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from capabilities.core.delivery.adaptation import CannotRead, adapt
from capabilities.core.delivery.decision import PAGED, DeliveryForm
from capabilities.core.delivery.obstacles import Reason, ReasonCode, make_reason
from capabilities.core.delivery.reader import ContentPolicy, Position, Reader
from capabilities.core.delivery.tokens import Estimate, estimate_delivery, estimate_request
from capabilities.core.delivery.writing import TextStyle, write
from capabilities.core.describing.prompt import describing_chat
from capabilities.core.message import FilePart, Inspectable, Inspection, UnreadableError
from capabilities.core.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """Maximum duration in seconds of a recording that may be described, and the source of this limit."""

    seconds: int
    source: str
    checked_on: str = "2026-11-22"


MAX_DURATIONS: Mapping[Kind, LengthLimit] = MappingProxyType(
    {
        Kind.VIDEO: LengthLimit(
            600, "Google, Gemini API, video understanding: from 10 minutes on a video is a long one"
        ),
        Kind.AUDIO: LengthLimit(
            1800, "people speak about 150 words a minute: half an hour is as much as a description may have"
        ),
    }
)


def obstacle_to_describing(file: FilePart, describer: Reader) -> Reason | None:
    """Return why the describing model cannot read the file or images of its pages, or None if it can."""
    try:
        return _find_obstacle(file, describer)
    except UnreadableError as error:
        return make_reason(ReasonCode.UNREADABLE, problem=error.reason)


def _find_obstacle(file: FilePart, describer: Reader) -> Reason | None:
    if file.unreadable or not (file.content or file.url):
        return make_reason(ReasonCode.UNREADABLE, problem=file.unreadable or "failed")
    if file.size == 0:
        return make_reason(ReasonCode.EMPTY)
    # Do not let the model describe extracted text: the receiving model could read this text itself.
    visual_reader = replace(describer, policies=frozenset({ContentPolicy.CONVERT}))
    if reason := _too_long(file) or _locked(file):
        return reason
    result = write(file, visual_reader, Position(), TextStyle())
    return result.delivery.reason if result.delivery.form is DeliveryForm.DESCRIBED else None


def _too_long(file: FilePart) -> Reason | None:
    longest = MAX_DURATIONS.get(file.kind)
    if longest is None:
        return None
    # Inspect the file only if its duration is unknown, because inspecting means opening it.
    seconds = file.seconds if file.seconds is not None else _inspect(file).seconds
    if seconds is None or seconds <= longest.seconds:
        return None
    return make_reason(ReasonCode.TOO_LONG, actual=math.ceil(seconds), limit=longest.seconds)


def _locked(file: FilePart) -> Reason | None:
    return make_reason(ReasonCode.LOCKED) if file.mime_type in PAGED and _inspect(file).locked else None


def _inspect(file: FilePart) -> Inspection:
    return file.content.inspect() if isinstance(file.content, Inspectable) else Inspection()


def estimate_describing(
    file: FilePart, describer: Reader, model: str, question: str | None, language: str | None
) -> Estimate | None:
    """Estimate the tokens in the prompt and the file, or return None if the file's tokens cannot be estimated."""
    visual_reader = replace(describer, policies=frozenset({ContentPolicy.CONVERT}))
    adapted = adapt(describing_chat(file, question, language), visual_reader, TextStyle(language))
    if isinstance(adapted, CannotRead):
        return None
    # Without the file's dimensions or duration, its tokens are unknown. Counting them as zero would be misleading.
    file_estimate = estimate_delivery(adapted.deliveries[0], model)
    return Estimate(estimate_request(adapted, model), file_estimate.rule) if file_estimate else None
