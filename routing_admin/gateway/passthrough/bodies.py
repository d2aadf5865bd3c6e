"""Parse an operation's body, a JSON object or a form. A form's files stay in memory without being copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from artifacts.core.filenames import clean_filename
from capabilities.core.message import Blob
from capabilities.core.operations.table import BodyShape, FormFile, Operation
from capabilities.core.translatable import translatable
from capabilities.json_bodies import upload_limit
from routing_admin.gateway.body import parse_object, take_bytes
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpCall

FORM_TYPE = "multipart/form-data"
ANY_TYPE = "application/octet-stream"
BLOCK = 256 * 1024
"""Number of bytes of a file to send at a time."""


class FormBody(dict[str, tuple[str | FormFile, ...]]):
    """The fields of a form; each field maps to all of its values."""


def read_body(operation: Operation, call: HttpCall) -> Object:
    """Return the body, if the operation accepts its format; raise `BadRequestError` for any other format."""
    is_form = call.headers.get("content-type", "").lower().startswith(FORM_TYPE)
    shape = BodyShape.FORM if is_form else BodyShape.JSON
    if shape not in operation.bodies:
        raise BadRequestError(_expected_body(operation, call.path), None, "invalid_content_type")
    return _read_form(call) if is_form else parse_object(take_bytes(call))


def _expected_body(operation: Operation, path: str) -> str:
    if BodyShape.JSON in operation.bodies:
        return translatable("%(path)s takes a JSON object. Send it with Content-Type: application/json.", path=path)
    names = ", ".join(("model", operation.files[0]))
    return translatable(
        "%(path)s takes a form. Send multipart/form-data with the fields %(names)s.", path=path, names=names
    )


def _read_form(call: HttpCall) -> FormBody:
    data = take_bytes(call)
    meta = {"CONTENT_TYPE": call.headers["content-type"], "CONTENT_LENGTH": len(data)}
    try:
        texts, files = MultiPartParser(meta, cast(Any, _FormStream(data)), [_MemoryHandler()], "utf-8").parse()
    except (MultiPartParserError, SuspiciousOperation, ValueError):
        message = translatable(
            "The form could not be read. Send multipart/form-data with the boundary in its Content-Type."
        )
        raise BadRequestError(message, None, "invalid_form") from None
    fields = FormBody({name: tuple(values) for name, values in texts.lists()})
    for name, parts in files.lists():
        received = tuple(part.file_of_form() for part in parts if isinstance(part, _ReceivedFile))
        fields[name] = (*fields.get(name, ()), *received)
    return fields


class _FormStream:
    """A file object that reads bytes in memory in blocks, so that they are never copied as a whole."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._view, self._position = memoryview(data), 0

    def read(self, size: int | None = None) -> bytes:
        end = len(self._view) if size is None else self._position + size
        block = bytes(self._view[self._position : end])
        self._position += len(block)
        return block


class _ReceivedFile(UploadedFile):  # type: ignore[type-arg]
    def __init__(self, name: str, content_type: str | None, data: bytearray) -> None:
        super().__init__(None, name, content_type, len(data))
        self._data = data

    def close(self) -> None:
        # There is nothing to close, but Django calls this method on each file when it rejects a form.
        ...

    def file_of_form(self) -> FormFile:
        data, kind = self._data, self.content_type or ""
        # The type is sent in a header of the upstream request, so replace an invalid one.
        is_plain = kind.isascii() and kind.isprintable() and "/" in kind
        return FormFile(clean_filename(self.name), kind if is_plain else ANY_TYPE, bytes_blob(data))


class _MemoryHandler(FileUploadHandler):
    """A Django upload handler that keeps files in memory, because the body is in memory already."""

    chunk_size = BLOCK

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._data = bytearray()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._data += raw_data
        if len(self._data) > upload_limit():
            message = translatable("The file is larger than the limit of %(limit)s bytes.", limit=upload_limit())
            raise BadRequestError(message, self.field_name, "file_too_large", 413)

    def file_complete(self, file_size: int) -> _ReceivedFile:
        return _ReceivedFile(self.file_name or "", self.content_type, self._data)


def bytes_blob(data: bytes | bytearray) -> Blob:
    """Return a blob that yields bytes in memory block by block."""
    return Blob(len(data), lambda: _blocks(data))


def _blocks(data: bytes | bytearray) -> Iterator[bytes]:
    for start in range(0, len(data), BLOCK):
        yield bytes(data[start : start + BLOCK])
