"""What a provider said beside its words, for the page of a request: why it stopped, what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from artifacts.storage.thumbnails import can_have_thumbnail
from capabilities.labels import KINDS
from routing_admin.models import RequestLog
from routing_admin.request_log.entries import TOKEN_DETAILS

if TYPE_CHECKING:
    from artifacts.models import Artifact

SORTS: Mapping[str, str | Promise] = {
    "cachedTokens": gettext_lazy("read from the cache"),
    "cacheWriteTokens": gettext_lazy("written to the cache"),
    "cacheWrite5mTokens": gettext_lazy("of these for 5 minutes"),
    "cacheWrite1hTokens": gettext_lazy("of these for an hour"),
    "promptAudioTokens": gettext_lazy("audio input"),
    "promptImageTokens": gettext_lazy("image input"),
    "toolTokens": gettext_lazy("from the provider's own tools"),
    "reasoningTokens": gettext_lazy("thinking"),
    "completionAudioTokens": gettext_lazy("audio output"),
    "completionImageTokens": gettext_lazy("image output"),
    "acceptedPredictionTokens": gettext_lazy("predicted and right"),
    "rejectedPredictionTokens": gettext_lazy("predicted and wrong"),
    "webSearchRequests": gettext_lazy("web searches (calls)"),
    "webFetchRequests": gettext_lazy("web pages fetched (calls)"),
}
"""What each sort of tokens is called, in the order of the page."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """Something that the model made: what the log has of it, and its artifact while that lives."""

    kind: str
    mime_type: str
    size: int | None
    artifact: Artifact | None
    was_stored: bool
    is_elsewhere: bool

    @property
    def kind_name(self) -> str:
        """Its kind in the reader's language."""
        return str(KINDS.get(self.kind, self.kind))

    @property
    def has_picture(self) -> bool:
        """Whether a small picture of it can be shown."""
        return self.artifact is not None and can_have_thumbnail(self.artifact)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What stands beside an answer; empty texts where nothing was said.

    `replay_of` is the request whose outcome it was, where it was another one's; `choice` says which of several
    answers to one request it is.
    """

    finish_reason: str
    stop_reason: str
    explanation: str
    service_tier: str
    fingerprint: str
    tokens: tuple[tuple[int, str | Promise], ...]
    citations: int
    files: tuple[AnswerFile, ...]
    replay_of: str
    choice: Mapping[str, Any]


def artifact_ids(row: RequestLog) -> tuple[str, ...]:
    """The ids of the artifacts that a request's answer became."""
    return tuple(each["artifactId"] for each in (row.answer or {}).get("media", ()) if each["artifactId"])


def build_answer(row: RequestLog, artifacts: Mapping[str, Artifact]) -> AnswerView:
    """What the log has of a request's answer; a sort of tokens of which there were none is left out.

    `artifacts` are those of `artifact_ids` that still live, by their ids.
    """
    said, counts = row.answer or {}, row.token_details or {}
    stop = said.get("stopDetails") or {}
    tokens = tuple((counts[name], SORTS[name]) for name in TOKEN_DETAILS if counts.get(name))
    return AnswerView(
        said.get("finishReason", ""),
        said.get("stopReason", ""),
        ": ".join(stop[name] for name in ("category", "explanation") if stop.get(name)),
        said.get("serviceTier", ""),
        said.get("systemFingerprint", ""),
        tokens,
        said.get("citations", 0),
        tuple(_answer_file(each, artifacts) for each in said.get("media", ())),
        said.get("replayOf", ""),
        said.get("choice", {}),
    )


def _answer_file(each: Mapping[str, Any], artifacts: Mapping[str, Artifact]) -> AnswerFile:
    known = each["artifactId"]
    facts = (each["kind"], each["mimeType"], each["size"])
    return AnswerFile(*facts, artifacts.get(known or ""), known is not None, each["elsewhere"])
