"""Support `Idempotency-Key`: a request repeated with its key within a day gets the stored outcome, at no further cost.

This follows the IETF draft (draft-ietf-httpapi-idempotency-key-header) and Stripe: a second call with the same key
receives 409 while the first call is in progress, and 422 if its request is different. Outcomes that a repetition would
not change are stored, above all successful answers. Outcomes that may differ the next time (429, any 5xx, a disconnect)
are not stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

from capabilities.access import Principal
from capabilities.core.translatable import translatable
from capabilities.json_bodies import received_limit
from routing_admin.core.fallback.chain import OK
from routing_admin.dispatch.recorded import header_value
from routing_admin.gateway.authentication import find_caller
from routing_admin.gateway.body import is_packed
from routing_admin.gateway.chat_api import SSE, ChatApi
from routing_admin.gateway.errors import BadRequestError, GatewayError
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.threads import run_in_thread
from routing_admin.platform.databases.unavailable import is_unavailable
from routing_admin.platform.server.fair_semaphore import OverloadedError, parses, slot
from routing_admin.request_log.outcomes import (
    LEASE,
    OUTCOME_BYTES,
    CallOutcome,
    Claim,
    ClaimRefusal,
    ConflictingCall,
    StoredOutcome,
    claim_key,
    digest_parts,
    release_key,
    renew_claim,
    store_outcome,
)
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream.bodies import AnswerTooLargeError, BadEncodingError, decompress

log = logging.getLogger(__name__)

HEADER = "idempotency-key"
REPLAYED, ORIGINAL, NOT_STORED = "x-routing-replayed", "x-routing-original-request-id", "x-routing-not-stored"
"""Response headers. They say whether the outcome is a replay, the id of the original request, and why an outcome was
not stored.
"""
KEY = re.compile(r"[\x20-\x7e]{1,255}")
STORED = frozenset({400, 413, 415, 422})
"""Statuses of errors that depend only on the request. Their outcomes are stored, as are those with a 2xx status."""
OWN_HEADERS = frozenset({"x-request-id"})
"""Headers that are never stored, because each call has its own value."""
RETRY_SECONDS = 1.0
BLOCK = 64 * 1024
STRICT = "x-routing-strict"
BOUNDARY = re.compile(r'boundary="?([^";,]+)', re.I)

RUNNING = translatable("The first call with this Idempotency-Key is still in progress. Retry in a moment.")
OTHER_CALL = translatable(
    "This Idempotency-Key was used for a different request (%(request)s). Send the same request again, or use a new "
    "key."
)
OUTCOME_NOT_STORED = translatable(
    "The result of the call with this Idempotency-Key (%(request)s) was too large to store, or can no longer be "
    "opened. Use a new key to call again."
)
WRONG_KEY = translatable("An Idempotency-Key must have 1 to 255 printable ASCII characters.")


async def answer_once(call: HttpCall, api: ChatApi, answer: Callable[[], Awaitable[HttpReply]]) -> HttpReply:
    """Return the reply from `answer`, or the stored outcome if the same call has been made before.

    Raise `GatewayError`: 401 or 403 as usual, 400 for an invalid key, 409 while the first call is in progress, 422 for
    a different request, 410 if its outcome was not stored. Database errors propagate.
    """
    principal = await find_caller(call, api.path)
    recorder = RequestRecorder(call.request_id, api.surface)
    recorder.add_facts(agent=principal.agent, key=principal.key)
    try:
        # Decompressing a body to compute its fingerprint is heavy work, too.
        async with slot(parses(), principal.key_owner) if is_packed(call) else nullcontext():
            claim = await run_in_thread(call, partial(_claim, call, _call_path(call, api), principal))
        if isinstance(claim, ConflictingCall):
            raise conflict_error(claim)
    except (GatewayError, OverloadedError) as error:
        recorder.end(outcome=error.code, status=error.status, error=error.message)
        raise
    if isinstance(claim, StoredOutcome):
        return _replay(claim, recorder, call.request_id)
    return await _answer(call, claim, answer)


def _call_path(call: HttpCall, api: ChatApi) -> str:
    # Use the actual path, because Gemini's path contains the model; add the content type, because Gemini has two stream
    # formats.
    return call.path + api.stream_type.removeprefix(SSE)


def _claim(call: HttpCall, path: str, principal: Principal) -> Claim | StoredOutcome | ConflictingCall:
    key = call.headers[HEADER].strip()
    if not KEY.fullmatch(key):
        raise BadRequestError(WRONG_KEY, "Idempotency-Key")
    return claim_key(
        digest_parts(HEADER, principal.key, principal.agent, key), fingerprint_call(call, path), call.request_id
    )


def fingerprint_call(call: HttpCall, path: str) -> str:
    """Return a digest of the request's path, decompressed body and `x-routing-strict` header.

    Compression and a form's boundary are ignored, because they may differ in each attempt.
    """
    body = call.body.data
    if is_packed(call):
        with suppress(AnswerTooLargeError, BadEncodingError):
            body = decompress(call.headers["content-encoding"], bytes(body), received_limit(call.path))
    boundary = BOUNDARY.search(call.headers.get("content-type", ""))
    if boundary is not None:
        body = body.replace(boundary[1].encode("latin-1"), b"")
    return digest_parts(path, call.headers.get(STRICT, ""), hashlib.sha256(body).hexdigest())


def conflict_error(conflict: ConflictingCall) -> GatewayError:
    if conflict.reason is ClaimRefusal.RUNNING:
        refusal = GatewayError(409, "idempotency_key_in_use", RUNNING, "Idempotency-Key")
        refusal.retry_after, refusal.should_retry = RETRY_SECONDS, True
        return refusal
    is_other_call = conflict.reason is ClaimRefusal.OTHER_CALL
    status, code, sentence = (
        (422, "idempotency_key_reused", OTHER_CALL) if is_other_call else (410, "outcome_gone", OUTCOME_NOT_STORED)
    )
    return GatewayError(status, code, translatable(sentence, request=conflict.request_id), "Idempotency-Key")


def _replay(stored: StoredOutcome, recorder: RequestRecorder, request_id: str) -> HttpReply:
    outcome = stored.outcome
    reply = HttpReply(outcome.status, dict(outcome.headers), outcome.body)
    if outcome.streamed:
        reply.body, reply.blocks = b"", _split_body(outcome.body)
    reply.headers.update({REPLAYED: "true", ORIGINAL: header_value(stored.request_id), "x-request-id": request_id})
    defaults = {"outcome": OK if outcome.status < 300 else f"http_{outcome.status}", "stream": outcome.streamed}
    recorder.end(**{**defaults, **stored.facts}, status=outcome.status, replay_of=stored.request_id)
    return reply


async def _split_body(body: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(body), BLOCK):
        yield body[start : start + BLOCK]


async def _answer(call: HttpCall, claim: Claim, answer: Callable[[], Awaitable[HttpReply]]) -> HttpReply:
    active_claim = _ActiveClaim(call, claim)
    try:
        reply = await answer()
    except BaseException:  # Also if the caller disconnects.
        await active_claim.end(None)
        raise
    if reply.blocks is not None:
        reply.blocks = _RecordedStream(reply, reply.blocks, active_claim)
        return reply
    is_stored = reply.status in STORED or 200 <= reply.status < 300
    problem = await active_claim.end(_build_outcome(reply, reply.body) if is_stored else None)
    if problem:
        reply.headers[NOT_STORED] = problem
    return reply


def _build_outcome(reply: HttpReply, body: bytes) -> CallOutcome:
    headers = {name: value for name, value in reply.headers.items() if name.lower() not in OWN_HEADERS}
    return CallOutcome(reply.status, headers, body, reply.blocks is not None)


class _ActiveClaim:
    """A claim on an idempotency key, which is renewed until the call ends."""

    def __init__(self, call: HttpCall, claim: Claim) -> None:
        self._call, self._claim = call, claim
        self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def end(self, outcome: CallOutcome | None) -> str:
        """Store the outcome, or release the key if there is none; return why the outcome was not stored, or ""."""
        self._renewal.cancel()
        work = partial(store_outcome, self._claim, outcome) if outcome else partial(release_key, self._claim)
        try:
            # Shield this, so that the outcome is stored even if the caller disconnects. Catch errors, so that the
            # caller still gets the answer if storing fails.
            stored = await asyncio.shield(run_in_thread(self._call, work))
        except Exception as error:
            log.error("the outcome of request %s is not stored", self._call.request_id, exc_info=error)
            return "unavailable"
        return "too_large" if stored is False else ""

    async def _renew(self) -> None:
        is_claimed = True
        while is_claimed:
            # Renew after a third of the lease, which leaves time for another attempt before it expires.
            await asyncio.sleep(LEASE.total_seconds() / 3)
            try:
                is_claimed = await run_in_thread(self._call, partial(renew_claim, self._claim))
            except Exception as error:
                # Try again later, because the database may be available again before the lease expires.
                if not is_unavailable(error):
                    raise


class _RecordedStream(AsyncGenerator[bytes, None]):
    """A streamed answer that is stored if it is complete."""

    def __init__(self, reply: HttpReply, blocks: AsyncGenerator[bytes, None], active_claim: _ActiveClaim) -> None:
        self._reply, self._blocks, self._active_claim = reply, blocks, active_claim
        self._pieces: list[bytes] = []
        self._size, self._ended = 0, False

    async def asend(self, value: None) -> bytes:
        try:
            block = await self._blocks.asend(value)
        except BaseException:
            await self._end()
            raise
        # An outcome above the limit is not stored, so do not collect it in memory.
        if self._size <= OUTCOME_BYTES:
            self._pieces.append(block)
        self._size += len(block)
        return block

    async def athrow(self, *problem: Any) -> bytes:
        return await self._blocks.athrow(*problem)

    # This also releases the key if the stream was never read.
    async def aclose(self) -> None:
        await self._blocks.aclose()
        await self._end()

    async def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        is_whole = self._reply.is_whole is not None and self._reply.is_whole()
        await self._active_claim.end(_build_outcome(self._reply, b"".join(self._pieces)) if is_whole else None)
