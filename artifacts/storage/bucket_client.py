"""The S3 client. Only this module uses the package `obstore` and its exceptions.

Errors are converted to `StoreUnavailableError` or `StorageFullError` with our own messages. The response of the S3
service may repeat signed data, so only its error code is included. While the service is down, only one call at a time
tries to reach it, and all others fail immediately. The number of concurrent calls is limited, and none of them holds a
database connection.
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
from artifacts.core.errors import STORE_SLOW, ArtifactError, StorageFullError, StoreUnavailableError
from artifacts.core.store import BLOCK, StoreOutage
from capabilities.connections import release_connections
from capabilities.core.translatable import translatable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


MAX_CALLS, MAX_UNRESPONSIVE_CALLS = 32, 8
"""`MAX_CALLS` limits concurrent calls. `MAX_UNRESPONSIVE_CALLS` limits them if there has been no response for
`SLOW_SECONDS`. It is lower than the gateway's number of file threads, so that an unresponsive S3 service cannot block
all of them."""
SLOW_SECONDS = 3.0
SLOT_SECONDS = 2.0
"""Number of seconds that a call waits for a free slot."""


class CallSlots:
    """A semaphore for the S3 calls of this process, with fewer slots while the service does not respond."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._freed = clock, threading.Condition()
        self._in_use, self._answered_at = 0, 0.0

    def acquire(self) -> bool:
        """Take a slot and return True, or return False if no slot becomes free in time."""
        with self._freed:
            deadline = self._clock() + SLOT_SECONDS
            while self._in_use >= (MAX_UNRESPONSIVE_CALLS if self._is_quiet() else MAX_CALLS):
                remaining = deadline - self._clock()
                if remaining <= 0 or self._is_quiet():
                    return False
                self._freed.wait(remaining)
            # If there was no other call, measure the time without a response from the start of this call.
            self._answered_at = self._answered_at if self._in_use else self._clock()
            self._in_use += 1
            return True

    def release(self) -> None:
        """Release the slot of a call that has ended."""
        with self._freed:
            self._in_use, self._answered_at = self._in_use - 1, self._clock()
            self._freed.notify()

    def _is_quiet(self) -> bool:
        return bool(self._in_use) and self._clock() - self._answered_at > SLOW_SECONDS


PART = 5 * 1024 * 1024
"""Size in bytes of each part of an upload. S3 accepts no smaller parts. Two parts may be sent concurrently."""
MAX_COPY_BYTES = 5 * 1024**3
"""Maximum size in bytes of an object that S3 can copy in one call."""
RETRY_SECONDS = 0.5
"""After a call without a response, the number of seconds before another call may try to reach the service."""
PROBE_SECONDS = 30.0
"""Number of seconds before another call may try to reach the service, even if the current one has not ended."""
CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=2),
    "read_timeout": timedelta(seconds=20),
    "timeout": timedelta(minutes=15),
}
CHECK_TIMEOUT = timedelta(seconds=5)
"""If a check takes longer than this, the service counts as unavailable. The check itself continues for up to
`read_timeout`."""
RETRIES: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=5)}

CODE = re.compile(r"<Code>(\w{1,60})</Code>")
NO_BUCKET = "NoSuchBucket"
FULL = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientCapacity"})
NO_CREDENTIALS = "NoCredentials"
REFUSED = frozenset({"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
BUSY = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Busy"})
MACHINE_ROLE = ("169.254.169.254", "/latest/api/token", "redential")
"""If neither the settings nor the machine's role provide credentials, obstore's error message contains one of these
strings."""


class ObjectChangedError(Exception):
    """The object's ETag has changed since the object was last examined."""


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Key, size in bytes, storage time (Unix seconds) and ETag of an object."""

    key: str
    size: int
    modified: float
    tag: str


def object_key(sha256: str) -> str:
    return f"obj/{sha256}"


class BucketClient:
    """Thread-safe calls to an S3 bucket. Each call may raise `StoreUnavailableError`."""

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
        """Return the outage of the service, or None if it responds.

        A check that takes too long already counts as an outage, even though it has not ended.
        """
        since = self._checking_since
        if self._outage is None and since is not None and datetime.now(UTC) - since > CHECK_TIMEOUT:
            return StoreOutage(since, _unresponsive_error(self._bucket).details)
        return self._outage

    def find(self, key: str) -> ObjectFacts | None:
        with self.translate_errors():
            try:
                return _parse_facts(obstore.head(self._store, key))
            except FileNotFoundError:
                # Listing raises an error if the bucket itself does not exist.
                next(iter(obstore.list(self._store, "none", chunk_size=1)), None)
                return None

    def read(self, key: str, start: int = 0, tag: str = "") -> tuple[ObjectFacts, Iterator[bytes]]:
        """Return an object and its bytes from `start` on.

        Raise `FileNotFoundError`, or `ObjectChangedError` if the object's ETag is not `tag`.
        """
        options: Any = {"range": {"offset": start}} if start else {}
        options |= {"if_match": tag} if tag else {}
        with self.translate_errors():
            try:
                result = obstore.get(self._store, key, options=options)
            except PreconditionError:
                raise ObjectChangedError from None
            return _parse_facts(result.meta), self._blocks(iter(result.stream(BLOCK)))

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """Return bytes from `start` up to, but not including, `stop`.

        Raise `FileNotFoundError` if the object does not exist.
        """
        with self.translate_errors():
            return bytes(obstore.get_range(self._store, key, start=start, end=stop))

    def put(self, key: str, data: bytes | bytearray) -> str:
        """Store a complete object and return its ETag."""
        with self.translate_errors():
            return obstore.put(self._store, key, bytes(data), use_multipart=False)["e_tag"] or ""

    def copy(self, key: str, new_key: str) -> None:
        """Copy an object within the bucket. Raise `FileNotFoundError` if it does not exist."""
        with self.translate_errors():
            obstore.copy(self._store, key, new_key)

    def delete(self, key: str) -> None:
        """Delete the object if it exists."""
        with self.translate_errors():
            obstore.delete(self._store, key)

    def list(self, folder: str) -> Iterator[ObjectFacts]:
        pages = iter(obstore.list(self._store, folder, chunk_size=1000))
        while True:
            with self.translate_errors():
                page = next(pages, None)
            if page is None:
                return
            yield from map(_parse_facts, page)

    def begin(self, key: str) -> ObjectWriter:
        """Begin writing an object in parts. The object does not exist until the writer is closed."""
        with self.translate_errors():
            return ObjectWriter(self, obstore.open_writer(self._store, key, buffer_size=PART, max_concurrency=2))

    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the bucket exists and may be listed."""
        self._checking_since = self._checking_since or datetime.now(UTC)
        try:
            with self.translate_errors():
                next(iter(obstore.list(self._store, "tmp", chunk_size=1)), None)
        finally:
            self._checking_since = None

    def _blocks(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            with self.translate_errors():
                block = next(stream, b"")
            if not block:
                return
            for start in range(0, len(block), BLOCK):  # Split the blocks, because obstore does not limit their size.
                yield bytes(block[start : start + BLOCK])

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Run a call in a slot, without holding a database connection, and translate its exceptions."""
        if self.is_silent:
            if time.monotonic() < self._next_try:
                raise _unresponsive_error(self._bucket)
            self._next_try = time.monotonic() + PROBE_SECONDS
        # An S3 call may take minutes, so it must not hold a pooled database connection.
        release_connections()
        if not self._slots.acquire():
            raise self._note(_slow_error(self._bucket))
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
                raise self._note(_build_error(NO_BUCKET, self._bucket)) from None
            self._outage = None
            raise
        except BaseError as error:
            raise self._note(self._explain(error)) from None
        else:
            self.is_silent, self._outage = False, None

    def _note(self, error: ArtifactError) -> ArtifactError:
        # An outage lasts from its first error until a call succeeds.
        if isinstance(error, StoreUnavailableError):
            since = self.outage.since if self.outage else datetime.now(UTC)
            self._outage = StoreOutage(since, error.details)
        return error

    def _explain(self, error: BaseError) -> ArtifactError:
        # Use only the error code, because the response may repeat signed data.
        message = str(error)
        code = CODE.search(message)
        is_refused = isinstance(error, PermissionDeniedError | UnauthenticatedError)
        self.is_silent = False
        if (code and code[1] not in BUSY) or is_refused:
            return _build_error(code[1] if code else "AccessDenied", self._bucket)
        if any(phrase in message for phrase in MACHINE_ROLE):
            return _build_error(NO_CREDENTIALS, self._bucket)
        # The service did not respond properly, so refuse further calls until an attempt succeeds.
        self.is_silent, self._next_try = True, time.monotonic() + RETRY_SECONDS
        return _unresponsive_error(self._bucket)


class ObjectWriter:
    """An object that is being written in parts. `close` completes it, and `abort` discards the parts."""

    def __init__(self, client: BucketClient, file: obstore.WritableFile) -> None:
        self._client, self._file = client, file

    def write(self, data: bytes | bytearray) -> None:
        with self._client.translate_errors():
            self._file.write(bytes(data))

    def close(self) -> None:
        with self._client.translate_errors():
            self._file.close()

    def abort(self) -> None:
        """Discard the object. Do nothing if the service cannot be reached."""
        with suppress(ArtifactError, OSError), self._client.translate_errors():
            # obstore discards the parts if the writer's context ends with an exception.
            self._file.__exit__(InterruptedError, InterruptedError(), None)


def _parse_facts(meta: Mapping[str, Any]) -> ObjectFacts:
    modified = meta["last_modified"].timestamp()
    return ObjectFacts(meta["path"], meta["size"], modified, meta["e_tag"] or "")


def _unresponsive_error(bucket: Bucket) -> StoreUnavailableError:
    return StoreUnavailableError(
        translatable(
            "The artifact store %(place)s is not responding. Check that it is running and reachable from this machine.",
            place=str(bucket),
        )
    )


def _slow_error(bucket: Bucket) -> StoreUnavailableError:
    details = translatable(
        "The artifact store %(place)s responds too slowly: calls that wait for it take up all slots of this process. "
        "Check its load, and the network between.",
        place=str(bucket),
    )
    return StoreUnavailableError(details, STORE_SLOW)


def _build_error(code: str, bucket: Bucket) -> ArtifactError:
    bucket_url = str(bucket)
    if code in FULL:
        return StorageFullError()
    if code == NO_BUCKET:
        text = translatable(
            "The bucket %(place)s does not exist. Create it, or correct ROUTING_ADMIN_ARTIFACTS_URL.",
            place=bucket_url,
        )
    elif code == NO_CREDENTIALS:
        text = translatable(
            "There are no credentials for the artifact store %(place)s. Set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or give this machine a role.",
            place=bucket_url,
        )
    elif code in REFUSED:
        text = translatable(
            "The artifact store %(place)s rejects the credentials (%(code)s). Correct the AWS_… variables, or "
            "allow them to list, get, put and delete objects.",
            place=bucket_url,
            code=code,
        )
    else:
        text = translatable(
            "The artifact store %(place)s rejects requests (%(code)s). Check the bucket's region, this "
            "machine's clock and ROUTING_ADMIN_ARTIFACTS_URL.",
            place=bucket_url,
            code=code,
        )
    return StoreUnavailableError(text)
