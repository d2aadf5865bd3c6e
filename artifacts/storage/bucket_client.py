"""Calls to a service that speaks S3: the only module that knows the package, its errors and their words.

What goes wrong there comes out as `StoreAwayError` or `StorageFullError` with a sentence of ours: an answer of the
service may hold what was signed, so none of its words but the code of its error goes any further. While the service
does not answer one call at a time looks whether it is back, and the others are told at once. Only so many calls are
under way at a time, and none of them holds a database connection.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import (
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from artifacts.core.bucket import Bucket
from artifacts.core.errors import STORE_SLOW, ArtifactError, StorageFullError, StoreAwayError
from artifacts.core.store import BLOCK, StoreOutage
from capabilities.connections import release_connections
from capabilities.core.translatable import translatable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


# How many calls to a remote store are under way at a time, so that a store that hangs does not take every thread.

MAX_CALLS, MAX_UNANSWERED = 32, 8
"""Calls that may be under way, and how many while none was answered for `SLOW_SECONDS`: fewer than the gateway has
threads for files, so that a service that hangs does not take them all."""
SLOW_SECONDS = 3.0
SLOT_SECONDS = 2.0
"""How long a call waits for others to end."""


class CallSlots:
    """A semaphore for the calls of one process, with fewer slots while the service answers none of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._freed = clock, threading.Condition()
        self._in_use, self._answered_at = 0, 0.0

    def acquire(self) -> bool:
        """Whether a slot was free, or became free in time."""
        with self._freed:
            until = self._clock() + SLOT_SECONDS
            while self._in_use >= (MAX_UNANSWERED if self._is_quiet() else MAX_CALLS):
                left = until - self._clock()
                if left <= 0 or self._is_quiet():
                    return False
                self._freed.wait(left)
            self._answered_at = self._answered_at if self._in_use else self._clock()
            self._in_use += 1
            return True

    def release(self) -> None:
        """Give the slot of an answered call back."""
        with self._freed:
            self._in_use, self._answered_at = self._in_use - 1, self._clock()
            self._freed.notify()

    def _is_quiet(self) -> bool:
        return bool(self._in_use) and self._clock() - self._answered_at > SLOW_SECONDS


PART = 5 * 1024 * 1024
"""Bytes of an upload that are sent at a time, the least that S3 takes; two parts may be on their way."""
LARGEST = 5 * 1024**3
"""Bytes of the largest object that S3 copies in one call."""
TRY_AGAIN_SECONDS = 0.5
"""How long after a call that found no service the next one may look again."""
PROBE_SECONDS = 30.0
"""How long one call may look, at most, before another one does."""
CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=2),
    "read_timeout": timedelta(seconds=20),
    "timeout": timedelta(minutes=15),
}
UNANSWERED = timedelta(seconds=5)
"""How long a check waits before the service counts as away; the call itself waits for `read_timeout`."""
RETRIES: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=5)}

CODE = re.compile(r"<Code>(\w{1,60})</Code>")
NO_BUCKET = "NoSuchBucket"
FULL = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientCapacity"})
NO_CREDENTIALS = "NoCredentials"
REFUSED = frozenset({"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
BUSY = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Busy"})
MACHINE_ROLE = ("169.254.169.254", "/latest/api/token", "redential")
"""In the words of an error: it was looked for credentials where the machine's role would give some."""


class ObjectChangedError(Exception):
    """An object is not any more what it was when it was looked at."""


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """An object as it is now: its key, size in bytes, when it was stored (seconds since 1970), and a tag that changes
    with its content.
    """

    key: str
    size: int
    modified: float
    tag: str


def key_of(sha256: str) -> str:
    """Where the object of a hash lies."""
    return f"obj/{sha256}"


class BucketClient:
    """The calls; safe for threads. Every one may raise `StoreAwayError`."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket, self._slots = bucket, CallSlots()
        self.is_silent, self._next_try = False, 0.0
        self._outage: StoreOutage | None = None
        self._checking_since: datetime | None = None
        config: Any = {"virtual_hosted_style_request": bucket.is_virtual}
        config |= {"aws_endpoint_url_s3": bucket.base_url} if bucket.endpoint else {}
        config |= {"region": bucket.region} if bucket.region else {}
        self._store = S3Store(
            bucket.name,
            prefix=bucket.prefix or None,
            config=config,
            client_options={**CLIENT, "allow_http": bucket.allows_http},
            retry_config=RETRIES,
        )

    @property
    def outage(self) -> StoreOutage | None:
        """Why the service is away; None while it answers. A check that waits for long says so before it gives up."""
        since = self._checking_since
        if self._outage is None and since is not None and datetime.now(UTC) - since > UNANSWERED:
            return StoreOutage(since, _silence(self._bucket).details)
        return self._outage

    def find(self, key: str) -> ObjectFacts | None:
        """The object as it is now; None where there is none."""
        with self.in_our_words():
            try:
                return _facts_of(obstore.head(self._store, key))
            except FileNotFoundError:
                next(iter(obstore.list(self._store, "none", chunk_size=1)), None)  # or is there no bucket at all?
                return None

    def read(self, key: str, start: int = 0, tag: str = "") -> tuple[ObjectFacts, Iterator[bytes]]:
        """The object and its bytes from there on. Raises `FileNotFoundError`, `ObjectChangedError` where it has not
        that tag.
        """
        options: Any = {"range": {"offset": start}} if start else {}
        options |= {"if_match": tag} if tag else {}
        with self.in_our_words():
            try:
                result = obstore.get(self._store, key, options=options)
            except PreconditionError:
                raise ObjectChangedError from None
            return _facts_of(result.meta), self._blocks(iter(result.stream(BLOCK)))

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """So many bytes of an object that is there. Raises `FileNotFoundError`."""
        with self.in_our_words():
            return bytes(obstore.get_range(self._store, key, start=start, end=stop))

    def put(self, key: str, data: bytes | bytearray) -> str:
        """Stores an object whole; its tag."""
        with self.in_our_words():
            return obstore.put(self._store, key, bytes(data), use_multipart=False)["e_tag"] or ""

    def copy(self, key: str, to: str) -> None:
        """Copies an object where it is. Raises `FileNotFoundError`."""
        with self.in_our_words():
            obstore.copy(self._store, key, to)

    def delete(self, key: str) -> None:
        """Removes an object, or nothing."""
        with self.in_our_words():
            obstore.delete(self._store, key)

    def list(self, folder: str) -> Iterator[ObjectFacts]:
        """Every object in a folder."""
        pages = iter(obstore.list(self._store, folder, chunk_size=1000))
        while True:
            with self.in_our_words():
                page = next(pages, None)
            if page is None:
                return
            yield from map(_facts_of, page)

    def begin(self, key: str) -> ObjectWriter:
        """An object that is written in parts and is there when the last one is."""
        with self.in_our_words():
            return ObjectWriter(self, obstore.open_writer(self._store, key, buffer_size=PART, max_concurrency=2))

    def check(self) -> None:
        """Asks whether the bucket is there and may be listed."""
        self._checking_since = self._checking_since or datetime.now(UTC)
        try:
            with self.in_our_words():
                next(iter(obstore.list(self._store, "tmp", chunk_size=1)), None)
        finally:
            self._checking_since = None

    def _blocks(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            with self.in_our_words():
                block = next(stream, b"")
            if not block:
                return
            for start in range(0, len(block), BLOCK):  # the package gives as much as there is
                yield bytes(block[start : start + BLOCK])

    @contextmanager
    def in_our_words(self) -> Iterator[None]:
        """One call, in a slot and without a database connection; remembers whether the service answers.

        Raises our errors for the package's: by `_silence`, `_error_of` and `_explain`.
        """
        if self.is_silent:
            if time.monotonic() < self._next_try:
                raise _silence(self._bucket)
            self._next_try = time.monotonic() + PROBE_SECONDS
        release_connections()
        if not self._slots.acquire():
            raise self._note(_slowness(self._bucket))
        try:
            with self._translated():
                yield
        finally:
            self._slots.release()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            self.is_silent = False
            if NO_BUCKET in str(error):
                raise self._note(_error_of(NO_BUCKET, self._bucket)) from None
            self._outage = None
            raise
        except BaseError as error:
            raise self._note(self._explain(error)) from None
        else:
            self.is_silent, self._outage = False, None

    def _note(self, error: ArtifactError) -> ArtifactError:
        """The error; an outage lasts from the first that says so until a call succeeds."""
        if isinstance(error, StoreAwayError):
            since = self.outage.since if self.outage else datetime.now(UTC)
            self._outage = StoreOutage(since, error.details)
        return error

    def _explain(self, error: BaseError) -> ArtifactError:
        """Our error for theirs, by the code in its words; none of the rest is handed on."""
        words = str(error)
        code = CODE.search(words)
        is_refused = isinstance(error, PermissionDeniedError | UnauthenticatedError)
        self.is_silent = False
        if (code and code[1] not in BUSY) or is_refused:
            return _error_of(code[1] if code else "AccessDenied", self._bucket)
        if any(word in words for word in MACHINE_ROLE):
            return _error_of(NO_CREDENTIALS, self._bucket)
        self.is_silent, self._next_try = True, time.monotonic() + TRY_AGAIN_SECONDS
        return _silence(self._bucket)


class ObjectWriter:
    """An object on its way, in parts: `close` makes it be there, `abort` forgets what was sent."""

    def __init__(self, client: BucketClient, file: obstore.WritableFile) -> None:
        self._client, self._file = client, file

    def write(self, data: bytes | bytearray) -> None:
        """Takes the next bytes."""
        with self._client.in_our_words():
            self._file.write(bytes(data))

    def close(self) -> None:
        """Completes the object."""
        with self._client.in_our_words():
            self._file.close()

    def abort(self) -> None:
        """Gives the object up, as far as the service can be told."""
        with suppress(ArtifactError, OSError), self._client.in_our_words():
            self._file.__exit__(InterruptedError, InterruptedError(), None)  # left with an error it forgets its parts


def _facts_of(meta: Mapping[str, Any]) -> ObjectFacts:
    modified = meta["last_modified"].timestamp()
    return ObjectFacts(meta["path"], meta["size"], modified, meta["e_tag"] or "")


def _silence(bucket: Bucket) -> StoreAwayError:
    return StoreAwayError(
        translatable(
            "The artifact store %(place)s is not responding. Check that it is running and reachable from this machine.",
            place=str(bucket),
        )
    )


def _slowness(bucket: Bucket) -> StoreAwayError:
    details = translatable(
        "The artifact store %(place)s responds too slowly: calls that wait for it take up all slots of this process. "
        "Check its load, and the network between.",
        place=str(bucket),
    )
    return StoreAwayError(details, STORE_SLOW)


def _error_of(code: str, bucket: Bucket) -> ArtifactError:
    """Our error for one that has a code."""
    place = str(bucket)
    if code in FULL:
        return StorageFullError()
    if code == NO_BUCKET:
        text = translatable(
            "The bucket %(place)s does not exist. Create it, or correct ROUTING_ADMIN_ARTIFACTS_URL.",
            place=place,
        )
    elif code == NO_CREDENTIALS:
        text = translatable(
            "There are no credentials for the artifact store %(place)s. Set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or give this machine a role.",
            place=place,
        )
    elif code in REFUSED:
        text = translatable(
            "The artifact store %(place)s rejects the credentials (%(code)s). Correct the AWS_… variables, or "
            "allow them to list, get, put and delete objects.",
            place=place,
            code=code,
        )
    else:
        text = translatable(
            "The artifact store %(place)s rejects requests (%(code)s). Check the bucket's region, this "
            "machine's clock and ROUTING_ADMIN_ARTIFACTS_URL.",
            place=place,
            code=code,
        )
    return StoreAwayError(text)
