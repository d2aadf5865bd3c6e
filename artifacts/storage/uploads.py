"""Receive uploads. Each file streams to a temporary file in the byte store while its hash and size are computed.

A file becomes durable only when `keep` is called. Other files are removed when the request ends. If a crash prevents
this, a later sweep removes them. Only the beginning of a file is held in memory: type detection needs it, and forms
read small files from it.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
import weakref
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from io import SEEK_END, BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError

from artifacts.core.errors import ArtifactError, MissingError, StorageFullError, StoreUnavailableError, TooLargeError
from artifacts.core.store import Stored, Upload
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.json_bodies import upload_limit
from capabilities.signing import read_secrets_again, sign, signatures

IN_MEMORY = 2 * 1024 * 1024
"""Number of bytes at the beginning of each file that are also held in memory, for forms that call `read()`, such as a
configuration import."""


class UploadFailedError(ArtifactError):
    """The upload was incomplete or malformed. Nothing was stored."""

    code = "upload_failed"


class ReceivedFile(UploadedFile):  # type: ignore[type-arg]
    """A complete file in the temporary directory of the byte store. `keep` makes it durable."""

    def __init__(self, upload: Upload, beginning: bytes, size: int, about: dict[str, Any]) -> None:
        whole = BytesIO(beginning) if len(beginning) == size else None
        super().__init__(whole, size=size, **about)
        self.upload = upload

    def keep(self) -> Stored:
        return self.upload.finish()

    def close(self) -> None:
        """Remove the temporary file unless it was kept. Django calls this at the end of the request."""
        self.upload.abort()

    def open(self, mode: str | None = None, *_: Any, **__: Any) -> ReceivedFile:
        """Rewind the file for reading. Raise `ValueError` if it is larger than `IN_MEMORY` bytes."""
        if self.file is None:
            raise ValueError(f"This file is larger than the {IN_MEMORY} bytes that can be read here.")
        self.file.seek(0)
        return self


class StoringUploadHandler(FileUploadHandler):
    """A Django upload handler that writes to the byte store and enforces the size limit while reading.

    An error is stored in `request.upload_problem` and ends parsing, so that the view can report it.
    """

    chunk_size = 256 * 1024

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self._begun: list[Upload] = []
        self._limit = upload_limit()
        # Remove the temporary files if the request ends before a view runs.
        weakref.finalize(self, _give_up, self._begun)

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._beginning = bytearray()
        with _UploadRefusal(self):
            self._upload = byte_store().begin_upload(self._limit)
            self._begun.append(self._upload)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        with _UploadRefusal(self):
            self._upload.write(raw_data)
        remaining = IN_MEMORY - len(self._beginning)
        if remaining > 0:
            self._beginning += raw_data[:remaining]

    def file_complete(self, file_size: int) -> ReceivedFile:
        about = {
            "name": self.file_name,
            "content_type": self.content_type,
            "charset": _encoding_in(self.charset),
            "content_type_extra": self.content_type_extra,
        }
        return ReceivedFile(self._upload, bytes(self._beginning), file_size, about)

    def upload_interrupted(self) -> None:
        self.give_up(UploadFailedError("The upload is incomplete. Send the file again."))

    def give_up(self, problem: ArtifactError) -> None:
        """Remove all files received with this request, and record the reason."""
        _give_up(self._begun)
        if self.request is not None:
            self.request.upload_problem = problem  # type: ignore[attr-defined]


MAX_NAME = 40
"""Maximum length of an encoding name. Python's longest one has 21 characters. Longer names are ignored, because Python
caches every name that it looks up."""


def _encoding_in(charset: str | bytes | None) -> str | None:
    # Django passes the `charset` of a part as bytes.
    name = charset.decode("ascii", "replace") if isinstance(charset, bytes) else charset
    return name if name and len(name) <= MAX_NAME else None


class _UploadRefusal:
    """Stops the upload if the byte store is unavailable or full, or if the file is too large."""

    def __init__(self, handler: StoringUploadHandler) -> None:
        self.handler = handler

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, TooLargeError | StorageFullError | StoreUnavailableError):
            self.handler.give_up(problem)
            raise StopUpload(connection_reset=True) from problem


def _give_up(uploads: list[Upload]) -> None:
    for upload in uploads:
        upload.abort()


def received_files(request: HttpRequest, name: str = "file") -> list[ReceivedFile]:
    """Return the files in the field `name` of a multipart request.

    Raise `TooLargeError`, `StorageFullError`, `StoreUnavailableError`, or `UploadFailedError` for a malformed body.
    """
    _measure(request)
    try:
        files = request.FILES.getlist(name)
    except (MultiPartParserError, UnreadablePostError, SuspiciousOperation, ValueError) as error:
        for handler in request.upload_handlers:
            handler.upload_interrupted()
        raise UploadFailedError(f"The upload could not be read: {error}") from error
    problem = getattr(request, "upload_problem", None)
    if problem is not None:
        raise problem
    return [file for file in files if isinstance(file, ReceivedFile)]


def _measure(request: HttpRequest) -> None:
    # Django does not read a body of unknown length, so set the length of a `chunked` body.
    if request.META.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" not in request.META:
        return
    body = getattr(request, "_stream", None)
    if body is None or not body.seekable():
        raise UploadFailedError("The upload does not say how long it is. Send it with a Content-Length.")
    request.META["CONTENT_LENGTH"] = str(body.seek(0, SEEK_END) or body.tell())
    body.seek(0)


# Upload links contain a signed token. The server can verify its signature and expiry without the database, and so
# decide before the body arrives whether the body may be large. The database row of a link ensures that the link is used
# only once.

PATH = "/api/v1/uploads/"
"""URL path prefix of upload links."""
FORM = re.compile(r"([0-9a-f]{8}[A-Za-z0-9_-]{32})([A-Za-z0-9_-]{32})")
"""Format of a token: expiry time (Unix seconds), 192 random bits, and signature."""
ADDRESS = re.compile(re.escape(PATH) + r"([^/]+)")


class TokenState(StrEnum):
    """The result of verifying the token of an upload link."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG = "wrong"


def make_token(expires_at: datetime) -> str:
    body = f"{int(expires_at.timestamp()):08x}{secrets.token_urlsafe(24)}"
    return body + _sign(body)


def check_token(token: str, now: datetime | None = None) -> TokenState:
    match = FORM.fullmatch(token)
    if match is None or not _is_ours(match[1], match[2]):
        return TokenState.WRONG
    is_over = int(token[:8], 16) <= (now or datetime.now(UTC)).timestamp()
    return TokenState.EXPIRED if is_over else TokenState.VALID


def check_upload_address(path: str) -> TokenState | None:
    """Return the state of the token in a request's path, or None if it is not the path of an upload link."""
    match = ADDRESS.fullmatch(path)
    return None if match is None else check_token(match[1])


def hash_token(token: str) -> str:
    """Return a token's digest for storage. A slow hash is not needed for 192 random bits."""
    return token_digests(token)[0]


def token_digests(token: str) -> list[str]:
    """Return the digests of a token, one for each of the installation's secrets, newest first."""
    return signatures(b"upload link " + token.encode())


def _sign(body: str) -> str:
    return _short(sign(_message(body)))


def _is_ours(body: str, signature: str) -> bool:
    # Another process may have rotated the secret after this process read it.
    matches = [hmac.compare_digest(signature, _short(signature_text)) for signature_text in signatures(_message(body))]
    return any(matches) or (read_secrets_again() and _is_ours(body, signature))


def _message(body: str) -> bytes:
    return b"upload token " + body.encode()


def _short(signature: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(signature)[:24]).decode()


# Orphans are bytes without a database row, and thumbnails without bytes. They remain if the process crashes after
# storing bytes and before writing their row, or if an upload exceeds the quota. Bytes of the last hour are kept,
# because their row may not have been written yet.

GRACE_SECONDS = 3600.0
BATCH = 500


def sweep_bytes(now: float) -> tuple[int, int]:
    """Remove bytes that have had no artifact for an hour. Return the number of removed files and bytes."""
    store, count, size = byte_store(), 0, 0
    digests = store.digests(before=now - GRACE_SECONDS)
    while batch := list(islice(digests, BATCH)):
        for sha256 in set(batch) - _digests_in_use(batch):
            with suppress(MissingError):  # Remove the bytes outside a transaction, because the store may be slow.
                freed = store.size(sha256)
                if not _digests_in_use([sha256]):
                    size, count = size + freed, count + store.delete(sha256)
    return count, size


def sweep_thumbnails() -> int:
    """Remove unfinished thumbnails, and thumbnails and rendered pages of deleted bytes. Return their number."""
    store, count = byte_store(), 0
    for path in (Path(settings.DATA_DIR) / "thumbnails").glob("??/*.part"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - GRACE_SECONDS:
                path.unlink()
                count += 1
    for path in _thumbnails():
        if not store.exists(path.stem[:64]):  # The file name begins with the hash of the source file.
            path.unlink(missing_ok=True)
            count += 1
    return count


def _digests_in_use(digests: list[str]) -> set[str]:
    return set(Artifact.objects.filter(sha256__in=digests).values_list("sha256", flat=True))


def _thumbnails() -> Iterator[Path]:
    folder = Path(settings.DATA_DIR) / "thumbnails"
    return chain(folder.glob("??/*.png"), folder.glob("??/*.pages"))
