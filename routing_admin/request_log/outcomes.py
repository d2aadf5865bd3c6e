"""Store outcomes of calls with an idempotency key for a day, and decide which process answers such a call.

A process claims a key by inserting a row, so only one process answers. The claim is renewed while the call runs. If the
process is killed, the lease expires, and the next call with the key takes the claim over.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import orjson
from cryptography.fernet import InvalidToken
from django.db import IntegrityError, transaction
from django.utils import timezone

from capabilities.secrets import cipher
from capabilities.signing import sign_permanently
from routing_admin.models import IdempotencyRecord, RequestLog
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log.journal import journal

LIFETIME = timedelta(days=1)
"""For this long after the start of the first call, repeated calls with its key get the same outcome."""
LEASE = timedelta(seconds=60)
"""How long a claim is valid without renewal."""
OUTCOME_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes of a response body to store."""
MAX_ATTEMPTS = 5
"""Maximum number of attempts to claim a key while other calls claim and release it."""
SWEEP = 100
"""Number of expired outcomes to delete with each new claim, for installations that never run `prune`."""


class ClaimRefusal(StrEnum):
    """Reason why a call with an idempotency key can be neither answered nor replayed."""

    OTHER_CALL = "other_call"
    RUNNING = "running"
    NOT_STORED = "not_stored"


@dataclass(frozen=True, slots=True)
class ConflictingCall:
    """The call that holds the key, and the reason for the conflict."""

    reason: ClaimRefusal
    request_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer the call with an idempotency key; `holder` is a random token that identifies the claim."""

    digest: str
    holder: str


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The response to a call; `streamed` says whether its body was a stream of events."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The outcome of an earlier call with the same key, with that call's request id and its facts from the log."""

    outcome: CallOutcome
    request_id: str
    facts: Mapping[str, Any]


def digest_parts(*parts: str) -> str:
    """Return a keyed digest of the strings, which is irreversible and always the same within an installation."""
    return sign_permanently("\n".join(parts).encode())


def claim_key(
    digest: str, fingerprint: str, request_id: str, now: datetime | None = None
) -> Claim | StoredOutcome | ConflictingCall:
    """Claim the key and return the claim. If another call holds the key, return its stored outcome or the conflict.

    Database errors propagate.
    """
    now = now or timezone.now()
    _sweep(now)
    row = None
    for _ in range(MAX_ATTEMPTS):
        claim = Claim(digest, secrets.token_hex(16))
        if _insert(claim, fingerprint, request_id, now):
            return claim
        row = IdempotencyRecord.objects.filter(pk=digest).first()
        # The key has been released in the meantime, so try to claim it again.
        if row is None:
            continue
        if row.expires_at <= now:
            # Filter by the holder, so that a newer claim to the key is not deleted.
            IdempotencyRecord.objects.filter(pk=digest, holder=row.holder).delete()
        elif row.fingerprint != fingerprint:
            return ConflictingCall(ClaimRefusal.OTHER_CALL, row.request_id)
        elif row.status is not None:
            return _open(row)
        elif row.held_until > now:
            break
        elif _take_over(row, claim, request_id, now):
            return claim
    return ConflictingCall(ClaimRefusal.RUNNING, row.request_id if row else "")


def renew_claim(claim: Claim) -> bool:
    """Extend the lease of a claim; return False if another call has taken it over."""
    return bool(_running(claim).update(held_until=timezone.now() + LEASE))


def release_key(claim: Claim) -> None:
    """Delete the claim of a call that has ended without an outcome to store.

    The next call with the key is then answered.
    """
    _running(claim).delete()


def store_outcome(claim: Claim, outcome: CallOutcome) -> bool:
    """Store the outcome in encrypted form. If its body is too large, store only the status and return False."""
    fits = len(outcome.body) <= OUTCOME_BYTES
    _running(claim).update(status=outcome.status, ciphertext=_seal(outcome) if fits else None)
    return fits


def _running(claim: Claim) -> Any:
    return IdempotencyRecord.objects.filter(pk=claim.digest, holder=claim.holder, status=None)


def _insert(claim: Claim, fingerprint: str, request_id: str, now: datetime) -> bool:
    try:
        with transaction.atomic(using=LOGS):
            IdempotencyRecord.objects.create(
                digest=claim.digest,
                fingerprint=fingerprint,
                request_id=request_id[:64],
                holder=claim.holder,
                held_until=now + LEASE,
                expires_at=now + LIFETIME,
            )
    except IntegrityError:
        return False
    return True


def _take_over(row: IdempotencyRecord, claim: Claim, request_id: str, now: datetime) -> bool:
    # If several calls try to take over the claim at the same time, the filter lets only one of them succeed.
    abandoned = _running(Claim(row.digest, row.holder)).filter(held_until=row.held_until)
    ends = {"held_until": now + LEASE, "expires_at": now + LIFETIME}
    return bool(abandoned.update(holder=claim.holder, request_id=request_id[:64], **ends))


def _sweep(now: datetime) -> None:
    expired = list(IdempotencyRecord.objects.filter(expires_at__lte=now).values_list("pk", flat=True)[:SWEEP])
    if expired:
        IdempotencyRecord.objects.filter(pk__in=expired, expires_at__lte=now).delete()


def _seal(outcome: CallOutcome) -> bytes:
    head = orjson.dumps([outcome.status, dict(outcome.headers), outcome.streamed])
    return cipher().encrypt(zlib.compress(head + b"\n" + outcome.body, 1))


def _open(row: IdempotencyRecord) -> StoredOutcome | ConflictingCall:
    if row.ciphertext is None:
        return ConflictingCall(ClaimRefusal.NOT_STORED, row.request_id)
    try:
        head, _, body = zlib.decompress(cipher().decrypt(bytes(row.ciphertext))).partition(b"\n")
    except InvalidToken:
        # The outcome was encrypted with a key that has since been removed.
        return ConflictingCall(ClaimRefusal.NOT_STORED, row.request_id)
    status, headers, streamed = orjson.loads(head)
    return StoredOutcome(CallOutcome(status, headers, body, streamed), row.request_id, _read_facts(row.request_id))


def _read_facts(request_id: str) -> Mapping[str, Any]:
    names = ("asked_model", "task_type", "matched", "language", "stream", "outcome")
    rows = RequestLog.objects.filter(pk=request_id).values(*names)
    facts = rows.first()
    if facts is None:
        # The call may have ended just now, so its log entry may still be in the queue.
        journal().flush()
        facts = rows.first()
    return facts or {}
