"""What came of calls with an idempotency key: who may answer one, and the outcome that its repetitions get for a day.

A key is claimed by inserting its row, so that of any number of processes one answers. Who claims it says again and
again that it is at it; one that is killed says nothing more, and the next call with the key takes its place.
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
from capabilities.signing import sign_lastingly
from routing_admin.models import IdempotencyRecord, RequestLog
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log.journal import journal

LIFETIME = timedelta(days=1)
"""How long the same key gets the same outcome, from the call's beginning."""
LEASE = timedelta(seconds=60)
"""How long a process that says nothing more of a call counts as being at it."""
OUTCOME_BYTES = 8 * 1024 * 1024
"""The largest body that is stored."""
TRIES = 5
"""How often a key is tried that others claim and let go of at the same moment."""
SWEEP = 100
"""Expired outcomes that a new claim removes, so that they go where nobody runs `prune`, too."""


class ClaimRefusal(StrEnum):
    """Why a call with a key is neither to be answered nor repeated."""

    OTHER_CALL = "other_call"
    RUNNING = "running"
    NOT_STORED = "not_stored"


@dataclass(frozen=True, slots=True)
class ConflictingCall:
    """The call that the key belongs to, and how it stands in the way."""

    reason: ClaimRefusal
    request_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer the call with a key, held by whoever has it."""

    digest: str
    holder: str


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call was answered with; `streamed` says that its body came in events."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The outcome of a call that came with this key before, the id it had, and what the log says of it."""

    outcome: CallOutcome
    request_id: str
    facts: Mapping[str, Any]


def digest_of(*words: str) -> str:
    """A digest under the installation's own secret: the same for the same words, and nothing that can be read back."""
    return sign_lastingly("\n".join(words).encode())


def claim_key(
    digest: str, fingerprint: str, request_id: str, now: datetime | None = None
) -> Claim | StoredOutcome | ConflictingCall:
    """The right to answer the call, or what came of the one that has it. Raises what the database raises."""
    now = now or timezone.now()
    _sweep(now)
    row = None
    for _ in range(TRIES):
        claim = Claim(digest, secrets.token_hex(16))
        if _insert(claim, fingerprint, request_id, now):
            return claim
        row = IdempotencyRecord.objects.filter(pk=digest).first()
        if row is None:
            continue
        if row.expires_at <= now:
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
    """Says that the call is still being answered; whether it still is by whoever has this claim."""
    return bool(_running(claim).update(held_until=timezone.now() + LEASE))


def release_key(claim: Claim) -> None:
    """Lets go of a key whose call came to nothing that is stored: the next one with it is answered anew."""
    _running(claim).delete()


def store_outcome(claim: Claim, outcome: CallOutcome) -> bool:
    """Stores what the call was answered with, encrypted; False, and only that there was one, where it is too large."""
    fits = len(outcome.body) <= OUTCOME_BYTES
    _running(claim).update(status=outcome.status, ciphertext=_seal(outcome) if fits else None)
    return fits


def _running(claim: Claim) -> Any:
    return IdempotencyRecord.objects.filter(pk=claim.digest, holder=claim.holder, status=None)


def _insert(claim: Claim, fingerprint: str, request_id: str, now: datetime) -> bool:
    """Whether the key was free."""
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
    """Whether the claim of a process that is gone is now this one; of several who try it is one."""
    gone = _running(Claim(row.digest, row.holder)).filter(held_until=row.held_until)
    ends = {"held_until": now + LEASE, "expires_at": now + LIFETIME}
    return bool(gone.update(holder=claim.holder, request_id=request_id[:64], **ends))


def _sweep(now: datetime) -> None:
    expired = list(IdempotencyRecord.objects.filter(expires_at__lte=now).values_list("pk", flat=True)[:SWEEP])
    if expired:
        IdempotencyRecord.objects.filter(pk__in=expired, expires_at__lte=now).delete()


def _seal(outcome: CallOutcome) -> bytes:
    head = orjson.dumps([outcome.status, dict(outcome.headers), outcome.streamed])
    return cipher().encrypt(zlib.compress(head + b"\n" + outcome.body, 1))


def _open(row: IdempotencyRecord) -> StoredOutcome | ConflictingCall:
    """The outcome in a row; it cannot be had where it was too large, or encrypted with a key that is gone."""
    if row.ciphertext is None:
        return ConflictingCall(ClaimRefusal.NOT_STORED, row.request_id)
    try:
        head, _, body = zlib.decompress(cipher().decrypt(bytes(row.ciphertext))).partition(b"\n")
    except InvalidToken:
        return ConflictingCall(ClaimRefusal.NOT_STORED, row.request_id)
    status, headers, streamed = orjson.loads(head)
    return StoredOutcome(CallOutcome(status, headers, body, streamed), row.request_id, _facts_of(row.request_id))


def _facts_of(request_id: str) -> Mapping[str, Any]:
    """What the log says was asked for, and how it ended; nothing where it does not have the request."""
    names = ("asked_model", "task_type", "matched", "language", "stream", "outcome")
    rows = RequestLog.objects.filter(pk=request_id).values(*names)
    facts = rows.first()
    if facts is None:
        journal().flush()  # it has just ended, and waits to be written
        facts = rows.first()
    return facts or {}
