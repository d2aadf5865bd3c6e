"""What a provider reported with an answer: the stop reason, token counts, citations and files."""

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
"""Sort of tokens → its name, in the order of the page."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file that the model generated, with its artifact if the artifact still exists."""

    kind: str
    mime_type: str
    size: int | None
    artifact: Artifact | None
    was_stored: bool
    is_elsewhere: bool

    @property
    def kind_name(self) -> str:
        return str(KINDS.get(self.kind, self.kind))

    @property
    def has_picture(self) -> bool:
        return self.artifact is not None and can_have_thumbnail(self.artifact)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What the page shows beside an answer. Texts are empty if the provider did not report them.

    `replay_of` is the request whose result was replayed, if any. `choice` says which of several answers this is.
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
    """Return the ids of the artifacts that hold an answer's files."""
    return tuple(file["artifactId"] for file in (row.answer or {}).get("media", ()) if file["artifactId"])


def build_answer(row: RequestLog, artifacts: Mapping[str, Artifact]) -> AnswerView:
    """Return what the log has about an answer.

    `artifacts` maps the ids from `artifact_ids` to the artifacts that still exist.
    """
    answer, counts = row.answer or {}, row.token_details or {}
    details = answer.get("stopDetails") or {}
    # Sorts of tokens that do not occur are left out, because most answers have only a few.
    tokens = tuple((counts[name], SORTS[name]) for name in TOKEN_DETAILS if counts.get(name))
    return AnswerView(
        answer.get("finishReason", ""),
        answer.get("stopReason", ""),
        ": ".join(details[name] for name in ("category", "explanation") if details.get(name)),
        answer.get("serviceTier", ""),
        answer.get("systemFingerprint", ""),
        tokens,
        answer.get("citations", 0),
        tuple(_answer_file(file, artifacts) for file in answer.get("media", ())),
        answer.get("replayOf", ""),
        answer.get("choice", {}),
    )


def _answer_file(file: Mapping[str, Any], artifacts: Mapping[str, Artifact]) -> AnswerFile:
    artifact_id = file["artifactId"]
    facts = (file["kind"], file["mimeType"], file["size"])
    return AnswerFile(*facts, artifacts.get(artifact_id or ""), artifact_id is not None, file["elsewhere"])
