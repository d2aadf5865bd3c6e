"""Log entries: facts that are recorded during a request, and the columns that are made from them afterwards.

Unless request bodies are recorded, entries contain no content, only names, ids, times and outcomes. Recording facts
must not delay the request noticeably, so the columns are made later in the journal's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.message import ChatRequest
from capabilities.core.providers.redaction import summarize
from capabilities.core.services.agents import NO_LABELS, Labels
from capabilities.core.translatable import encode_text
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind
from capabilities.core.wire import NO_DETAILS, AnswerDetails, Fault, Media, Usage
from capabilities.refused_files import RefusedFile, refusal_buffer
from routing_admin.core.fallback.chain import CANCELLED, OK, Attempt
from routing_admin.core.fallback.endings import request_ending
from routing_admin.core.planning.model_names import AUTO, TASK
from routing_admin.models import RequestLog
from routing_admin.request_log.recorded_bodies import ConversationDigest, clean_body, digest_conversation
from routing_admin.request_log.sent_files import SentFile, delivery_column, sent_files

MAX_NAMES = 100
ERROR_BYTES = 2048
"""Maximum number of bytes of an error message to store in the log."""


@dataclass(slots=True)
class RequestFacts:
    """Facts about a request apart from its attempts. Durations are in milliseconds; `began` is wall-clock time.

    `begun_ms` is the time after which keep-alive comments started the response, None if they did not. `path` and
    `trace` (the caller's trace headers) are set only if traces are exported. If the request asked for several answers,
    `choice` contains this answer's number, the number of answers, and the id of the first answer's request.
    """

    id: str
    began: datetime
    surface: str
    agent: str = ""
    key: str = ""
    asked_model: str = ""
    task_type: str = ""
    matched: bool = True
    language: str = ""
    stream: bool = False
    revision: int | None = None
    outcome: str = OK
    status: int | None = 200
    error: str = ""
    duration_ms: float = 0.0
    first_content_ms: float | None = None
    begun_ms: float | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    details: AnswerDetails = NO_DETAILS
    media: tuple[Media, ...] = ()
    citations: int = 0
    body: Mapping[str, Any] | None = None
    replay_of: str = ""
    choice: tuple[int, int, str] | None = None
    answered_model: str = ""
    path: str = ""
    trace: Mapping[str, str] = field(default_factory=dict)
    labels: Labels = NO_LABELS


@dataclass(slots=True)
class Entry:
    """A finished request that has yet to be written to the log.

    `sent` maps each candidate's position to the files that were sent to it. `costs` caches the cost columns, so that
    rows and metrics use the same prices.
    """

    facts: RequestFacts
    attempts: tuple[Attempt, ...] = ()
    sent: Mapping[int, tuple[SentFile, ...]] = field(default_factory=dict)
    conversation: ConversationDigest | None = None
    costs: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]] | None = None


def build_entry(
    facts: RequestFacts,
    attempts: Sequence[Attempt] = (),
    prepared: Mapping[int, Prepared] | None = None,
    chat: ChatRequest | None = None,
) -> Entry:
    """Return the log entry for a request, without its text or its files' bytes.

    `prepared` is what was sent to each candidate. `chat` is the canonical request; if files were sent, the entry
    contains digests of it.
    """
    sent = (
        {at: sent_files(request.deliveries) for at, request in prepared.items() if request.deliveries}
        if prepared
        else {}
    )
    return Entry(facts, tuple(attempts), sent, digest_conversation(chat) if sent and chat else None)


def bare_entry(entry: Entry) -> Entry:
    """Return a copy of the entry without the values that a provider returned."""
    known, names = entry.facts, ("agent", "key", "task_type", "language", "stream", "outcome", "status", "duration_ms")
    facts = RequestFacts(known.id, known.began, known.surface, **{name: getattr(known, name) for name in names})
    return Entry(facts)


def request_columns(entry: Entry) -> dict[str, Any]:
    """Return the columns of a request's row by field name."""
    facts, attempts = entry.facts, entry.attempts
    answered = find_answering(entry)
    return {
        "id": facts.id[:64],
        "started_at": facts.began,
        "agent": facts.agent[:120],
        "key": facts.key[:16],
        "team": facts.labels.team or None,
        "project": facts.labels.project or None,
        "end_user": facts.labels.user or None,
        "surface": facts.surface,
        "asked_model": facts.asked_model[:300],
        "task_type": facts.task_type[:200],
        "matched": facts.matched,
        "language": facts.language[:35],
        "stream": facts.stream,
        "outcome": facts.outcome[:40],
        "ending": request_ending(facts.outcome[:40]).value,
        "status": facts.status,
        "error": "",
        "sentence": _error_column(facts.error),
        "provider": answered.provider[:120] if answered else "",
        "model": answered.model[:200] if answered else "",
        "chain": [attempt_chip(attempt) for attempt in attempts] or replay_chips(facts.replay_of),
        # A stream that broke after its first content has an answering attempt, but does not count as answered.
        "fell_back": answered is not None and facts.outcome == OK and len(attempts) > 1,
        "duration_ms": facts.duration_ms,
        "first_content_ms": facts.first_content_ms,
        "prompt_tokens": facts.usage.prompt_tokens,
        "completion_tokens": facts.usage.completion_tokens,
        "token_details": token_details(facts.usage) or None,
        "answer": _answer_column(facts) or None,
        "adaptation": answered.adaptation[:200] if answered else "",
        "revision": facts.revision,
        "conversation": entry.conversation.whole if entry.conversation else None,
        "prefix": _prefix_column(entry),
        "body": clean_body(facts.body),
    }


TOKEN_DETAILS: Mapping[str, str] = {
    "cachedTokens": "cached_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "cacheWrite5mTokens": "cache_write_5m_tokens",
    "cacheWrite1hTokens": "cache_write_1h_tokens",
    "promptAudioTokens": "prompt_audio_tokens",
    "promptImageTokens": "prompt_image_tokens",
    "toolTokens": "tool_tokens",
    "reasoningTokens": "reasoning_tokens",
    "completionAudioTokens": "completion_audio_tokens",
    "completionImageTokens": "completion_image_tokens",
    "acceptedPredictionTokens": "accepted_prediction_tokens",
    "rejectedPredictionTokens": "rejected_prediction_tokens",
    "webSearchRequests": "web_search_requests",
    "webFetchRequests": "web_fetch_requests",
}
"""Maps names in the log and the API to the fields of `Usage` that contain token details or counts of web tool calls."""

_read_details = attrgetter(*TOKEN_DETAILS.values())


def token_details(usage: Usage) -> dict[str, int]:
    counts = zip(TOKEN_DETAILS, _read_details(usage), strict=True)
    return {name: count for name, count in counts if count is not None}


def _answer_column(facts: RequestFacts) -> dict[str, Any]:
    details = facts.details
    known: dict[str, Any] = {
        "finishReason": facts.finish_reason,
        "stopReason": details.stop_reason,
        "stopDetails": details.stop_details,
        "serviceTier": details.service_tier and details.service_tier[:100],
        "systemFingerprint": details.system_fingerprint and details.system_fingerprint[:100],
    }
    if facts.media:
        known["media"] = [_media(item) for item in facts.media[:MAX_NAMES]]
    if facts.citations:
        known["citations"] = facts.citations
    known["replayOf"] = facts.replay_of[:64]
    if facts.choice is not None:
        number, count, first = facts.choice
        known["choice"] = {"number": number, "of": count, "first": first[:64]}
    known["keepAliveMs"] = facts.begun_ms and round(facts.begun_ms, 1)
    return {name: value for name, value in known.items() if value}


def _prefix_column(entry: Entry) -> dict[str, Any] | None:
    digest = entry.conversation
    if digest is None:
        return None
    # Prompt prefixes are compared per candidate, so store the digests of the texts that replaced files for each
    # candidate.
    texts = {str(at): [file.digest for file in files] for at, files in entry.sent.items()}
    return {"continues": digest.continues, "opening": digest.opening, "past": digest.past, "words": texts}


def _media(media: Media) -> dict[str, Any]:
    return {
        "kind": media.kind.value,
        "mimeType": media.mime_type,
        "size": media.size,
        "artifactId": media.artifact_id,
        # The URL of a file may contain a secret, so do not log it.
        "elsewhere": media.url is not None,
    }


def find_answering(entry: Entry) -> Attempt | None:
    """Return the attempt that answered, even if it returned only the start of a stream, or None if no attempt did."""
    facts, last = entry.facts, entry.attempts[-1] if entry.attempts else None
    if last is None or last.outcome == CANCELLED:
        return None
    return last if facts.outcome == OK or facts.first_content_ms is not None else None


def attempt_columns(entry: Entry) -> list[dict[str, Any]]:
    """Return the columns of the attempts' rows, in the order of the attempts."""
    rows = [_attempt(entry, at, attempt) for at, attempt in enumerate(entry.attempts)]
    first = entry.facts.first_content_ms
    if first is not None and find_answering(entry) is not None:
        # Make the time relative to the start of the attempt instead of the request.
        rows[-1]["first_content_ms"] = first - entry.attempts[-1].started_ms
    return rows


def _attempt(entry: Entry, at: int, attempt: Attempt) -> dict[str, Any]:
    return {
        "request_id": entry.facts.id[:64],
        "position": at,
        "provider": attempt.provider[:120],
        "model": attempt.model[:200],
        "service": "",
        "outcome": attempt.outcome[:40],
        "status": 200 if attempt.outcome == OK else attempt.status_code,
        "error": "",
        "sentence": _error_column(attempt.error),
        "retry_attempts": attempt.retry_attempts,
        "started_ms": attempt.started_ms,
        "duration_ms": attempt.duration_ms,
        "first_content_ms": None,
        "tries": [
            {
                "startedMs": call.started_ms,
                "durationMs": call.duration_ms,
                "outcome": call.outcome,
                "status": call.status_code,
                **({"key": call.key} if call.key else {}),
            }
            for call in attempt.tries
        ],
        "deliveries": [delivery_column(file) for file in entry.sent.get(at, ())],
        "dropped_params": list_first(attempt.dropped_params),
        "at": entry.facts.began + timedelta(milliseconds=attempt.started_ms),
    }


def list_first(names: Sequence[str]) -> list[str]:
    """Return the first `MAX_NAMES` names and the number of further names, because callers may send any number."""
    surplus = len(names) - MAX_NAMES
    return [*names[:MAX_NAMES], f"… (+{surplus})"] if surplus > 0 else list(names)


def _error_column(text: str | None) -> Any:
    return encode_text(summarize(text, limit=ERROR_BYTES)) if text else None


def replay_chips(request_id: str) -> list[dict[str, Any]]:
    return [{"name": request_id[:64], "code": "replay", "tone": "ok"}] if request_id else []


def attempt_chip(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt for display in lists: candidate, code, colour, and the number of tries if there were several.

    The code is a status such as `429` or an outcome.
    """
    name = f"{attempt.provider}/{attempt.model}" if attempt.model else attempt.provider
    if attempt.outcome == OK:
        return {"name": name, "code": "200", "tone": "ok"}
    code = str(attempt.status_code) if attempt.status_code and attempt.status_code != 200 else attempt.outcome
    quiet = attempt.outcome.startswith("skipped_") or attempt.outcome == CANCELLED
    chip = {"name": name, "code": code, "tone": "" if quiet else ("warn" if code == "429" else "bad")}
    return {**chip, "tries": attempt.retry_attempts + 1} if attempt.retry_attempts else chip


KINDS: Mapping[str, str | Promise] = {
    "route": pgettext_lazy("asked for", "route"),
    "service": pgettext_lazy("asked for", "service"),
    "model": pgettext_lazy("asked for", "model"),
    "nothing": pgettext_lazy("asked for", "unknown name"),
    "": "",
}


@dataclass(frozen=True, slots=True)
class RequestedTarget:
    """The requested model name, its kind (`KINDS`), and the name of the route that it led to, if that is different."""

    name: str
    kind: str
    route: str = ""

    @property
    def label(self) -> str:
        return str(KINDS[self.kind])


def requested_target(row: RequestLog) -> RequestedTarget:
    """Return what lists show first for a request: the requested name, or the request's id if no name is known."""
    name = row.asked_model.removeprefix(TASK)
    if row.task_type:
        task_type = row.task_type if name not in ("", AUTO, row.task_type) else ""
        return RequestedTarget(name if task_type else row.task_type, "route", task_type)
    if not name:
        return RequestedTarget(row.pk, "")
    if not row.chain:
        return RequestedTarget(name, "nothing" if row.outcome == "model_not_found" else "")
    return RequestedTarget(name, "model" if "/" in name else "service")


# Each INSERT statement has one of a few fixed numbers of rows, because each number needs its own prepared statement.

Row = TypeVar("Row")


def in_chunks(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[Sequence[Row]]:
    """Yield the rows in order, in chunks of the largest of `sizes` that fits; a smaller remainder is one chunk."""
    at = 0
    while at < len(rows):
        left = len(rows) - at
        size = next((size for size in sizes if size <= left), left)
        yield rows[at : at + size]
        at += size


# The remaining functions find files that models refused although the models are configured to read such files.

MISMATCH = Fault.CAPABILITY_MISMATCH.value


def note_refused_files(entries: Iterable[Entry]) -> None:
    """Record which files models refused in these requests."""
    for entry in entries:
        if entry.sent:
            for refused in find_refused_files(entry):
                refusal_buffer().note(refused)


def find_refused_files(entry: Entry) -> Iterator[RefusedFile]:
    """Yield the files that a model does not accept according to its provider's error."""
    for at, attempt in enumerate(entry.attempts):
        status = next(
            (call.status_code for call in attempt.tries if call.outcome == MISMATCH and call.status_code), None
        )
        capabilities = _refused_kinds(attempt, entry.sent.get(at, ())) if status else frozenset[str]()
        if capabilities:
            yield RefusedFile(
                attempt.provider, attempt.model, capabilities, entry.facts.id[:64], status, entry.facts.began
            )


def _refused_kinds(attempt: Attempt, files: Iterable[SentFile]) -> frozenset[str]:
    # If the attempt failed, the refused files are those that need the capability that the provider named or, if it
    # named none, all files whose content was sent. If the attempt went on, they are the files that were then replaced
    # by descriptions.
    gave_up = attempt.outcome == MISMATCH
    if gave_up and attempt.param:
        return frozenset({attempt.param})
    native = (Outcome.NATIVE, Outcome.CONVERTED, Outcome.HOISTED)
    kinds = (file.kind for file in files if (file.delivery.outcome in native) is gave_up)
    return frozenset(CAPABILITY_OF_KIND[Kind(kind)] for kind in kinds)
