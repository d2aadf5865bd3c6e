"""What a provider said beside its words, for the page of a request: why it stopped, what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from routing_admin.models import RequestLog
from routing_admin.request_log.entries import TOKEN_DETAILS

SORTS: Mapping[str, str | Promise] = {
    "cachedTokens": gettext_lazy("read from the cache"),
    "cacheWriteTokens": gettext_lazy("written to the cache"),
    "cacheWrite5mTokens": gettext_lazy("of these for 5 minutes"),
    "cacheWrite1hTokens": gettext_lazy("of these for an hour"),
    "promptAudioTokens": gettext_lazy("sound in"),
    "promptImageTokens": gettext_lazy("images in"),
    "toolTokens": gettext_lazy("from the provider's own tools"),
    "reasoningTokens": gettext_lazy("thinking"),
    "completionAudioTokens": gettext_lazy("sound out"),
    "completionImageTokens": gettext_lazy("images out"),
}
"""What each sort of tokens is called, in the order of the page."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What stands beside an answer; empty texts where nothing was said."""

    finish_reason: str
    stop_reason: str
    explanation: str
    service_tier: str
    fingerprint: str
    tokens: tuple[tuple[int, str | Promise], ...]


def build_answer(row: RequestLog) -> AnswerView:
    """What the log has of a request's answer; a sort of tokens of which there were none is left out."""
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
    )
