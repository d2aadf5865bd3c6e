"""Extract text from Outlook messages (MSG, MS-OXMSG). Runs only in the extraction process."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from artifacts.core.detection.encodings import detect_text
from artifacts.extract.legacy import CompoundFile
from artifacts.extract.mail import (
    MAX_ATTACHMENTS,
    MAX_DEPTH,
    add_attachments,
    add_body,
    attachment_line,
    decode_text,
    message_heading,
)
from artifacts.extract.reading import READ_BYTES, Progress, RefusedError, TextCollector
from artifacts.extract.rtf import add_rtf, decompress_rtf

SUBJECT, SENDER, SENDER_MAIL, SENDER_SMTP, TO, CC = "0037", "0C1A", "0C1F", "5D01", "0E04", "0E03"
BODY, HTML, RTF = "1000", "1013", "1009"
FILE_NAME, SHORT_NAME, FILE_TYPE, FILE_DATA = "3707", "3704", "370E", "3701"
RECIPIENT_NAME, RECIPIENT_SMTP, RECIPIENT_MAIL = "3001", "39FE", "3003"
SENT, DELIVERED, CODE_PAGE, INTERNET_CODE_PAGE, RECIPIENT_KIND = 0x0039, 0x0E06, 0x3FFD, 0x3FDE, 0x0C15
"""Property ids. They are hexadecimal strings, as in stream names, for text properties, and numbers for properties of
fixed length."""

MESSAGE_HEAD, EMBEDDED_HEAD, CHILD_HEAD = 32, 24, 8
"""Number of header bytes before the fixed-length properties of a message, of an embedded message, and of a recipient or
attachment."""

CHARSETS = {20127: "ascii", 20866: "koi8-r", 21866: "koi8-u", 50220: "iso2022_jp", 50221: "iso2022_jp"}
CHARSETS |= {50222: "iso2022_jp", 50225: "iso2022_kr", 51932: "euc_jp", 51936: "gb18030", 51949: "euc_kr"}
CHARSETS |= {52936: "hz", 54936: "gb18030", 65001: "utf-8"}
CHARSETS |= {28590 + part: f"iso8859-{part}" for part in range(1, 16)}
"""Python's encodings for Windows code pages that Python does not know as `cp…`."""

MAX_RECIPIENTS = 200
EPOCH = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)


def msg(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write headers, body, attachment list and attached messages to `output`. Raise `RefusedError` for other files."""
    _add_message(_message_file(source), "", output, 0)


def msg_attachment(source: BinaryIO, number: int) -> tuple[str, str, bytes] | None:
    """Return the name, type and bytes of an attachment, given its number (from 1), or None if it does not exist.

    An attached message has no bytes of its own, because it is stored as properties of this file.
    """
    message = _message_file(source)
    child = next(islice(message.storages("", "__attach_version1.0_"), number - 1, None), None)
    if child is None:
        return None
    attachment = message.properties(child, CHILD_HEAD, message.properties("", MESSAGE_HEAD).charset)
    name = attachment.text(FILE_NAME) or attachment.text(SHORT_NAME)
    return name, attachment.text(FILE_TYPE), attachment.binary(FILE_DATA)


def _message_file(source: BinaryIO) -> MessageFile:
    file = CompoundFile(source)
    if "__properties_version1.0" not in file.names:
        raise RefusedError("unsupported")
    children: dict[str, list[str]] = {}
    for prefix in sorted({name[: at + 1] for name in file.names for at, char in enumerate(name) if char == "/"}):
        children.setdefault(prefix[:-1].rpartition("/")[0] + "/" * (prefix.count("/") > 1), []).append(prefix)
    return MessageFile(file, children)


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A compound file, with the child storages of each storage. The names of storages end with a slash."""

    file: CompoundFile
    children: Mapping[str, list[str]]

    def properties(self, prefix: str, head_bytes: int, charset: str | None = None) -> Properties:
        return Properties(self.file, prefix, head_bytes, charset)

    def storages(self, prefix: str, name: str) -> list[str]:
        return [child for child in self.children.get(prefix, ()) if child[len(prefix) :].startswith(name)]


def _add_message(source: MessageFile, prefix: str, output: TextCollector, depth: int) -> None:
    message = source.properties(prefix, EMBEDDED_HEAD if prefix else MESSAGE_HEAD)
    address = message.text(SENDER_SMTP) or message.text(SENDER_MAIL)
    names = _recipients(source, prefix, message.charset)
    lines = {"From": _person(message.text(SENDER), address)}
    lines |= {"To": names.get(1) or message.text(TO), "Cc": names.get(2) or message.text(CC)}
    lines |= {"Date": message.time(SENT) or message.time(DELIVERED), "Subject": message.text(SUBJECT)}
    output.add("".join(f"{name}: {' '.join(value.split())}\n" for name, value in lines.items() if value) + "\n")
    _add_body(message, output)
    attachments = source.storages(prefix, "__attach_version1.0_")[: MAX_ATTACHMENTS + 1]
    inner = {child: f"{child}__substg1.0_3701000D/" for child in attachments}
    add_attachments([_attachment(source, child, inner[child], message.charset) for child in attachments], output)
    for embedded in inner.values() if depth < MAX_DEPTH else ():
        if f"{embedded}__properties_version1.0" in source.file.names:
            output.add_marker(message_heading(source.properties(embedded, EMBEDDED_HEAD).text(SUBJECT)))
            _add_message(source, embedded, output, depth + 1)


def _recipients(source: MessageFile, prefix: str, charset: str | None) -> dict[int, str]:
    people: dict[int, list[str]] = {}
    for child in source.storages(prefix, "__recip_version1.0_")[:MAX_RECIPIENTS]:
        person = source.properties(child, CHILD_HEAD, charset)
        name, address = person.text(RECIPIENT_NAME), person.text(RECIPIENT_SMTP) or person.text(RECIPIENT_MAIL)
        people.setdefault(person.number(RECIPIENT_KIND) & 3, []).append(_person(name, address))
    return {kind: "; ".join(filter(None, names)) for kind, names in people.items()}


def _person(name: str, address: str) -> str:
    # Within an organisation, the address may be a directory path.
    return " ".join(filter(None, (name if name != address else "", f"<{address}>" if "@" in address else "")))


class Properties:
    """The properties stored under `prefix`.

    `charset` is the encoding of text properties that do not specify another one.
    """

    def __init__(self, file: CompoundFile, prefix: str, head_bytes: int, charset: str | None) -> None:
        self._file, self._prefix, self._head_bytes = file, prefix, head_bytes
        self._fixed = file.read(f"{prefix}__properties_version1.0")
        page = self.number(CODE_PAGE) or self.number(INTERNET_CODE_PAGE)
        self.charset = charset or (CHARSETS.get(page, f"cp{page}") if page else None) or self._detected_charset()

    def text(self, number: str) -> str:
        """Return a text property, decoded from UTF-16 or the message's code page."""
        unicode_text = self._file.read(self.stream(number, "001F")).decode("utf-16-le", "replace")
        encoded_text = self._file.read(self.stream(number, "001E"))
        return (unicode_text or (decode_text(encoded_text, self.charset) if encoded_text else "")).strip("\0")

    def binary(self, number: str) -> bytes:
        return self._file.read(self.stream(number, "0102"))

    def stream(self, number: str, kind: str) -> str:
        return f"{self._prefix}__substg1.0_{number}{kind}"

    def time(self, number: int) -> str:
        """Return the time in UTC, or "" if there is none."""
        ticks = self._value(number, "<Q")
        try:
            return (EPOCH + dt.timedelta(microseconds=ticks // 10)).strftime("%Y-%m-%d %H:%M:%S UTC") if ticks else ""
        except OverflowError:
            return ""

    def number(self, number: int) -> int:
        return self._value(number, "<I")

    def _detected_charset(self) -> str | None:
        # Detect the encoding from subject, names and body together, because each may be too short on its own.
        sample = b"\n".join(
            self._file.read(self.stream(number, "001E"))[:READ_BYTES] for number in (BODY, SUBJECT, SENDER, TO)
        )
        found = detect_text(sample.replace(b"\0", b""), whole=False) if not sample.isascii() else None
        return found.encoding if found else None

    def _value(self, number: int, form: str) -> int:
        # The header is followed by entries of 16 bytes: type, id, flags and value.
        for at in range(self._head_bytes, len(self._fixed) - 15, 16):
            if struct.unpack_from("<H", self._fixed, at + 2)[0] == number:
                return int(struct.unpack_from(form, self._fixed, at + 8)[0])
        return 0


def _add_body(message: Properties, output: TextCollector) -> None:
    # Prefer plain text, then HTML (stored as bytes or as text), then RTF.
    if text := message.text(BODY):
        add_body(text, False, output)
    elif page := message.binary(HTML):
        detected = detect_text(page, whole=True)
        add_body(decode_text(page, detected.encoding if detected else None), True, output)
    elif page_text := message.text(HTML):
        add_body(page_text, True, output)
    elif rich := message.binary(RTF):
        add_rtf(decompress_rtf(rich), output)


def _attachment(source: MessageFile, prefix: str, embedded: str, charset: str | None) -> str:
    properties = source.properties(prefix, CHILD_HEAD, charset)
    name = properties.text(FILE_NAME) or properties.text(SHORT_NAME)
    if f"{embedded}__properties_version1.0" in source.file.names:
        name = name or source.properties(embedded, EMBEDDED_HEAD).text(SUBJECT)
        return attachment_line(name, "application/vnd.ms-outlook", None)
    return attachment_line(name, properties.text(FILE_TYPE), source.file.size(properties.stream(FILE_DATA, "0102")))
