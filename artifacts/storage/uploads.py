"""Uploads on their way in: every file part streams to a temporary file of the store while it is hashed and counted.

Nothing is kept before an action keeps it: what nobody kept is removed when the request ends, and what a crash left
behind is swept later. Only the beginning stays in memory, for detection and for small files that a form reads.
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
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError

from artifacts.core.errors import ArtifactError, MissingError, StorageFullError, StoreAwayError, TooLargeError
from artifacts.core.store import Stored, Upload
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.json_bodies import upload_limit
from capabilities.signing import read_secrets_again, sign, signatures

IN_MEMORY = 2 * 1024 * 1024
"""Bytes of a file that stay in memory, too: what a form may `read()`, such as a configuration file."""


class UploadFailedError(ArtifactError):
    """An upload did not come in whole or made no sense; nothing was kept."""

    code = "upload_failed"


class ReceivedFile(UploadedFile):  # type: ignore[type-arg]
    """A file that has come in whole and waits in the store's temporary directory; `keep` makes it durable."""

    def __init__(self, upload: Upload, beginning: bytes, size: int, about: dict[str, Any]) -> None:
        whole = BytesIO(beginning) if len(beginning) == size else None
        super().__init__(whole, size=size, **about)
        self.upload = upload

    def keep(self) -> Stored:
        """The hash and the size of the bytes, which from now on are in the store."""
        return self.upload.finish()

    def close(self) -> None:
        """Removes the temporary file unless it was kept; Django calls this at the end of the request."""
        self.upload.abort()

    def open(self, mode: str | None = None, *_: Any, **__: Any) -> ReceivedFile:
        """The file from its beginning, for reading. Raises `ValueError` for one of more than `IN_MEMORY` bytes."""
        if self.file is None:
            raise ValueError(f"This file is larger than the {IN_MEMORY} bytes that can be read here.")
        self.file.seek(0)
        return self


class StoringUploadHandler(FileUploadHandler):
    """Django's way to hand us a file part in chunks; the limit is enforced while reading, whatever was announced.

    A refusal stands in `request.upload_problem` and ends the parsing, so that the view says what was wrong.
    """

    chunk_size = 256 * 1024

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self._begun: list[Upload] = []
        self._limit = upload_limit()
        weakref.finalize(self, _give_up, self._begun)

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """A file part begins."""
        super().new_file(*args, **kwargs)
        self._beginning = bytearray()
        with _UploadRefusal(self):
            self._upload = byte_store().begin_upload(self._limit)
            self._begun.append(self._upload)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """The next bytes of the part."""
        with _UploadRefusal(self):
            self._upload.write(raw_data)
        room = IN_MEMORY - len(self._beginning)
        if room > 0:
            self._beginning += raw_data[:room]

    def file_complete(self, file_size: int) -> ReceivedFile:
        """The file as the view gets it."""
        about = {
            "name": self.file_name,
            "content_type": self.content_type,
            "charset": _encoding_in(self.charset),
            "content_type_extra": self.content_type_extra,
        }
        return ReceivedFile(self._upload, bytes(self._beginning), file_size, about)

    def upload_interrupted(self) -> None:
        """The body ended in the middle of a part."""
        self.give_up(UploadFailedError("The upload is incomplete. Send the file again."))

    def give_up(self, problem: ArtifactError) -> None:
        """Removes everything that came with this request, and says why."""
        _give_up(self._begun)
        if self.request is not None:
            self.request.upload_problem = problem  # type: ignore[attr-defined]


MAX_NAME = 40
"""Characters of an encoding's name; Python's longest has 21, and it remembers every word it was asked for."""


def _encoding_in(charset: str | bytes | None) -> str | None:
    """The name in a part's `charset`, which Django hands on as the bytes it read; None for what cannot be one."""
    name = charset.decode("ascii", "replace") if isinstance(charset, bytes) else charset
    return name if name and len(name) <= MAX_NAME else None


class _UploadRefusal:
    """Turns a refusal of the store into the end of the upload."""

    def __init__(self, handler: StoringUploadHandler) -> None:
        self.handler = handler

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, TooLargeError | StorageFullError | StoreAwayError):
            self.handler.give_up(problem)
            raise StopUpload(connection_reset=True) from problem


def _give_up(uploads: list[Upload]) -> None:
    for upload in uploads:
        upload.abort()


def received_files(request: HttpRequest, name: str = "file") -> list[ReceivedFile]:
    """The files of a multipart request under that field name.

    Raises `TooLargeError`, `StorageFullError`, `StoreAwayError`, or `UploadFailedError` when the body makes no sense.
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
    """Says how long a body is that came in pieces (`Transfer-Encoding: chunked`): Django reads none of unknown length.

    Raises `UploadFailedError` where the body cannot be measured.
    """
    if request.META.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" not in request.META:
        return
    body = getattr(request, "_stream", None)
    if body is None or not body.seekable():
        raise UploadFailedError("The upload does not say how long it is. Send it with a Content-Length.")
    request.META["CONTENT_LENGTH"] = str(body.seek(0, SEEK_END) or body.tell())
    body.seek(0)


# The secret of an upload link: whether we made it, and until when it counts, is told without asking anybody.
#
# So the server knows before a body comes whether it may be a large one; that a link is used once is for its row to
# say.

PATH = "/api/v1/uploads/"
"""What the address of a link begins with."""
FORM = re.compile(r"([0-9a-f]{8}[A-Za-z0-9_-]{32})([A-Za-z0-9_-]{32})")
"""When it ends, in seconds of 1970, and 192 random bits; then their signature."""
ADDRESS = re.compile(re.escape(PATH) + r"([^/]+)")


class TokenState(StrEnum):
    """What a word in a link's place is."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG = "wrong"


def make_token(expires_at: datetime) -> str:
    """A new secret that counts until then."""
    body = f"{int(expires_at.timestamp()):08x}{secrets.token_urlsafe(24)}"
    return body + _sign(body)


def state_of_token(token: str, now: datetime | None = None) -> TokenState:
    """Whether a word is a secret of ours that still counts."""
    match = FORM.fullmatch(token)
    if match is None or not _is_ours(match[1], match[2]):
        return TokenState.WRONG
    is_over = int(token[:8], 16) <= (now or datetime.now(UTC)).timestamp()
    return TokenState.EXPIRED if is_over else TokenState.VALID


def state_of_address(path: str) -> TokenState | None:
    """The same for the address of a request; None where it is no link's."""
    match = ADDRESS.fullmatch(path)
    return None if match is None else state_of_token(match[1])


def digest_of(token: str) -> str:
    """What is kept of a secret: 192 random bits need no slow hash (docs/decisions)."""
    return digests_of(token)[0]


def digests_of(token: str) -> list[str]:
    """The same under each of the installation's secrets, the newest first."""
    return signatures(b"upload link " + token.encode())


def _sign(body: str) -> str:
    return _short(sign(_message(body)))


def _is_ours(body: str, signature: str) -> bool:
    """Whether a secret of ours made it, one that came meanwhile too."""
    made = [hmac.compare_digest(signature, _short(each)) for each in signatures(_message(body))]
    return any(made) or (read_secrets_again() and _is_ours(body, signature))


def _message(body: str) -> bytes:
    return b"upload token " + body.encode()


def _short(signature: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(signature)[:24]).decode()


# What lies in the store and belongs to no artifact any more: bytes without a row, thumbnails without bytes.
#
# Bytes come before their row, so a crash between the two, or an upload that the quota refused, leaves some behind.
# What was stored within the last hour may still be waiting for its row and stays.

GRACE_SECONDS = 3600.0
BATCH = 500


def sweep_bytes(now: float) -> tuple[int, int]:
    """Removes bytes that no artifact, deleted ones included, has had for an hour; (how many files, bytes)."""
    store, count, size = byte_store(), 0, 0
    digests = store.digests(before=now - GRACE_SECONDS)
    while some := list(islice(digests, BATCH)):
        for sha256 in set(some) - _digests_in_use(some):
            with suppress(MissingError):  # outside of a transaction: the store may be slow
                found = store.size(sha256)
                if not _digests_in_use([sha256]):
                    size, count = size + found, count + store.delete(sha256)
    return count, size


def sweep_thumbnails() -> int:
    """Removes thumbnails of bytes that are gone, and those that were never finished; how many."""
    store, swept = byte_store(), 0
    for path in (Path(settings.DATA_DIR) / "thumbnails").glob("??/*.part"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - GRACE_SECONDS:
                path.unlink()
                swept += 1
    for path in _thumbnails():
        if not store.exists(path.stem):
            path.unlink(missing_ok=True)
            swept += 1
    return swept


def _digests_in_use(digests: list[str]) -> set[str]:
    return set(Artifact.objects.filter(sha256__in=digests).values_list("sha256", flat=True))


def _thumbnails() -> Iterator[Path]:
    return (Path(settings.DATA_DIR) / "thumbnails").glob("??/*.png")
