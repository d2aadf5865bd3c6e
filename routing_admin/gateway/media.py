"""Files inside requests: decode inline data once, and resolve references with the agent's permissions."""

from __future__ import annotations

import binascii
import hashlib
import io
import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

import pybase64

from artifacts import extract
from artifacts.core.artifact import REF_PREFIX, artifact_id
from artifacts.core.delivery.get_artifact import BadBase64Error, InMemory, read_tool_result
from artifacts.core.detection.encodings import decode_text
from artifacts.core.detection.image_size import image_size
from artifacts.core.detection.kinds import filename_mime
from artifacts.core.detection.signatures import HEAD
from artifacts.core.errors import ArtifactError, MissingError
from artifacts.core.filenames import clean_filename
from artifacts.extract.drawing import draw_pages
from artifacts.library import store_blocks
from artifacts.sniffer import detector
from capabilities.actors import Actor
from capabilities.core.message import (
    Blob,
    Converted,
    ConvertTo,
    FilePart,
    Inspection,
    PageImages,
    Part,
    Text,
    TextPart,
    make_blob,
)
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind
from capabilities.errors import ActionError
from capabilities.json_bodies import upload_limit
from routing_admin.gateway.errors import BadRequestError

log = logging.getLogger(__name__)

T = TypeVar("T")

DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg", "m4a": "audio/mp4", "pcm16": "audio/L16"}
ANY_IMAGE, ANY_AUDIO = FilePart(Kind.IMAGE, "image/*"), FilePart(Kind.AUDIO, "audio/*")
ANY_VIDEO = FilePart(Kind.VIDEO, "video/*")
"""Descriptions of files about which only the kind (image, audio, video) is known."""
URL_CHARS = 8192
OPENAI_PREFIX = "file-"
CHUNK_CHARS = 4 * 1024 * 1024
"""Number of base64 characters to decode at a time, a multiple of four."""

Find = Callable[[str], FilePart | None]
"""Function that returns the file for a reference visible to the agent, or None if the file never existed.

A deleted file is also returned.
"""


@dataclass(frozen=True, slots=True)
class References:
    """Looks up the artifacts that a message references. `must_exist` is set for the newest user message.

    Only in that message is an unknown reference an error, so that old messages cannot make a conversation fail.
    """

    find: Find
    must_exist: bool

    def part(self, ref: str, param: str, description: FilePart) -> FilePart:
        """Return the referenced artifact or, if it does not exist, a part made from `description` that says so.

        Raise `BadRequestError` if the artifact must exist, without revealing whether another agent has it.
        """
        part = find_by_either_id(self.find, ref)
        if part is None and self.must_exist:
            message = translatable(
                "This agent has no such artifact. Upload the file, or ask its owner for the reference."
            )
            raise BadRequestError(message, param, "artifact_not_found")
        return part or _gone_part(ref, description)


def find_by_either_id(find: Callable[[str], T | None], ref: str) -> T | None:
    """Look up a reference, with or without the prefix of OpenAI's file ids, which some clients require."""
    row = find(ref)
    return find(ref.removeprefix(OPENAI_PREFIX)) if row is None and ref.startswith(OPENAI_PREFIX) else row


def _gone_part(ref: str, description: FilePart) -> FilePart:
    # Show a reference that cannot be an artifact id as the file's name.
    bare = artifact_id(ref)
    filename = description.filename or (None if bare else clean_filename(ref))
    return replace(description, artifact_id=bare, filename=filename, unreadable=MissingError.code)


@dataclass(frozen=True, slots=True)
class InlineContent:
    """File content received inside a request; documents and images are decoded in the extraction process."""

    data: bytes
    mime_type: str
    encoding: str | None

    @property
    def cache_key(self) -> str:
        """Return a hash of the bytes, which is the cache key for what is extracted from them."""
        return hashlib.sha256(self.data).hexdigest()

    def blob(self) -> Blob:
        return make_blob(self.data)

    def text(self) -> Text | None:
        if self.encoding:
            return decode_text(lambda: (self.data,), self.encoding)
        if not extract.can_extract(self.mime_type):
            return None
        with self._path() as path:
            return extract.extract_text(path, self.mime_type, cache_key=self.cache_key)

    def render(self) -> Text | None:
        with self._path() as path:
            return extract.extract_text(path, self.mime_type, encoding=self.encoding, cache_key=self.cache_key)

    def convert(self, target: ConvertTo) -> Converted | None:
        with self._path() as path:
            return extract.convert_image(path, target, cache_key=self.cache_key)

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        with self._path() as path:
            return draw_pages(path, target, count=count, cache_key=self.cache_key, mime_type=self.mime_type)

    def inspect(self) -> Inspection:
        with self._path() as path:
            return extract.inspect(path, self.mime_type, cache_key=self.cache_key)

    def count_pages(self) -> int | None:
        with self._path() as path:
            return extract.facts(path, "application/pdf", cache_key=self.cache_key).pages

    @contextmanager
    def _path(self) -> Iterator[Path]:
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.data)
            file.flush()
            yield Path(file.name)


def bytes_part(data: bytes, declared: str | None, filename: str | None) -> FilePart:
    """Return bytes from a request as a part; their type is detected as for uploads."""
    name = clean_filename(filename) if filename else None
    facts = detector().detect(
        data[:HEAD], len(data), declared, name, read_at=lambda offset, size: data[offset : offset + size]
    )
    pixels = image_size(data[:HEAD], facts.mime_type) if facts.kind is Kind.IMAGE else None
    width, height = pixels or (None, None)
    content = InlineContent(data, facts.mime_type, facts.encoding)
    return FilePart(facts.kind, facts.mime_type, name, len(data), width=width, height=height, content=content)


def parse_tool_text(text: str, param: str, references: References) -> Part:
    """Return a tool result as text, or as a file if it is the result of get_artifact.

    Raise `BadRequestError` if the file's data cannot be decoded.
    """
    try:
        file = read_tool_result(text)
    except BadBase64Error as error:
        raise BadRequestError(error.sentence, param, "invalid_base64") from None
    if file is None:
        return TextPart(text)
    if isinstance(file.content, InMemory):
        part = count_pages(bytes_part(file.content.data, file.mime_type, file.filename))
        return replace(part, artifact_id=file.artifact_id, introduced=True)
    return replace(references.part(REF_PREFIX + (file.artifact_id or ""), param, file), introduced=True)


def count_pages(file: FilePart) -> FilePart:
    """Add the number of pages to an inline PDF. This uses the extraction process, so it must be called in a thread."""
    content = file.content
    if file.mime_type != "application/pdf" or not isinstance(content, InlineContent):
        return file
    return replace(file, pages=content.count_pages())


def decode_base64(text: str, param: str, start: int = 0) -> bytes:
    """Decode base64 from `start` on; raise `BadRequestError` 400 if it is invalid, 413 if it is too large."""
    if len(text) - start > upload_limit() * 4 // 3 + 4:
        message = translatable("The file is larger than the limit of %(limit)s bytes.", limit=upload_limit())
        raise BadRequestError(message, param, "file_too_large", 413)
    try:
        return decode_chunks(text, start)
    except (binascii.Error, ValueError):
        pass
    try:
        # Some clients wrap base64 into lines. Removing whitespace copies the text, so try this only if decoding failed.
        return decode_chunks("".join(text[start:].split()), 0)
    except (binascii.Error, ValueError):
        message = translatable("This is not valid base64. Send the file again.")
        raise BadRequestError(message, param, "invalid_base64") from None


def decode_chunks(text: str, start: int) -> bytes:
    """Decode strict base64 in chunks, so that a large text is not copied; raise `ValueError` if it is invalid."""
    # Allow padding only at the end of the text. The decoder would also accept it at the end of any chunk.
    padding = text.find("=", start)
    if padding != -1 and padding < len(text) - 2:
        raise ValueError("padding is only valid at the end")
    if len(text) - start <= CHUNK_CHARS:
        return pybase64.b64decode(text[start:], validate=True)
    data = io.BytesIO()
    for offset in range(start, len(text), CHUNK_CHARS):
        data.write(pybase64.b64decode(text[offset : offset + CHUNK_CHARS], validate=True))
    return data.getvalue()


def data_url_part(url: str, param: str, filename: str | None = None) -> FilePart:
    """Return a data URL's content as a part; raise `BadRequestError` if it is malformed or cannot be decoded."""
    match = DATA_URL.match(url)
    if match is None:
        raise BadRequestError(translatable("A data URL must look like data:<type>;base64,<data>."), param)
    is_base64 = match[2].lower().endswith(";base64")
    data = decode_base64(url, param, match.end()) if is_base64 else unquote_to_bytes(url[match.end() :])
    return bytes_part(data, match[1] or None, filename)


def url_file(url: str, param: str, references: References, description: FilePart = ANY_IMAGE) -> FilePart:
    """Return the file at a data URL, artifact reference or web URL; web URLs are passed on, never fetched.

    Raise `BadRequestError` for any other URL.
    """
    if url[:5].lower() == "data:":
        return data_url_part(url, param)
    if url.startswith(REF_PREFIX):
        return references.part(url, param, description)
    parts = _web_address(url)
    if parts is None:
        raise BadRequestError(translatable("The URL must be a data URL, an https URL or artifact:<id>."), param)
    # The URL is not fetched, so only its extension indicates the file's type.
    mime_type = filename_mime(parts.path) or ""
    fits = mime_type.startswith(f"{description.kind.value}/")
    return replace(description, mime_type=mime_type if fits else description.mime_type, url=url)


def _web_address(url: str) -> SplitResult | None:
    if len(url) > URL_CHARS or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:  # The URL is invalid, for example because of brackets around an invalid IP address.
        return None
    return parts if parts.scheme in ("https", "http") and parts.hostname else None


def store_inline(actor: Actor, file: FilePart) -> FilePart:
    """Store inline bytes as an artifact of the agent; identical content is stored only once.

    Return the part with the artifact's id, or unchanged if storing fails.
    """
    if file.content is None:
        return file
    try:
        row = store_blocks(
            actor,
            file.content.blob().blocks(),
            once=True,
            owner=actor.name,
            filename=file.filename or "",
            declared=file.mime_type,
        )
    except (ArtifactError, ActionError) as error:
        log.warning("media of a request could not be stored: %s", error)
        return file
    return replace(file, artifact_id=row.pk)
