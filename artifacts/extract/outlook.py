"""Extract text from Outlook messages (MSG, MS-OXMSG). Runs only in the child process."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from artifacts.core.detection.encodings import find_text
from artifacts.extract.legacy import CompoundFile
from artifacts.extract.mail import MAX_ATTACHMENTS, add_attachments, add_body, attachment_line, decode_text
from artifacts.extract.rtf import add_rtf, decompress_rtf
from artifacts.extract.words import Progress, RefusedError, TextCollector

SUBJECT, SENDER, SENDER_MAIL, SENDER_SMTP, TO, CC = "0037", "0C1A", "0C1F", "5D01", "0E04", "0E03"
BODY, HTML, RTF = "1000", "1013", "1009"
FILE_NAME, SHORT_NAME, FILE_TYPE, FILE_DATA = "3707", "3704", "370E", "3701"
SENT, DELIVERED, CODE_PAGE = 0x0039, 0x0E06, 0x3FFD
"""Ids of properties: strings as in stream names for text, numbers for properties of fixed length."""

HEAD_BYTES = 32
EPOCH = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)


def msg(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add headers, body and the list of attachments; raise `RefusedError` for anything but a message."""
    file = CompoundFile(source)
    message = Properties(file, "")
    if "__properties_version1.0" not in file.names:
        raise RefusedError("unsupported")
    address = message.text(SENDER_SMTP) or message.text(SENDER_MAIL)
    sender = " ".join(filter(None, (message.text(SENDER), f"<{address}>" if "@" in address else "")))
    lines = {"From": sender, "To": message.text(TO), "Cc": message.text(CC)}
    lines |= {"Date": message.time(SENT) or message.time(DELIVERED), "Subject": message.text(SUBJECT)}
    output.add("".join(f"{name}: {' '.join(value.split())}\n" for name, value in lines.items() if value) + "\n")
    _add_body(message, output)
    add_attachments(list(islice(_attachments(file), MAX_ATTACHMENTS + 1)), output)


class Properties:
    """The properties of a message or attachment, stored under `prefix`."""

    def __init__(self, file: CompoundFile, prefix: str) -> None:
        self._file, self._prefix = file, prefix
        self._fixed = file.read(f"{prefix}__properties_version1.0")
        page = self._number(CODE_PAGE)
        self._charset = f"cp{page}" if page else None

    def text(self, number: str) -> str:
        """Return a text property, which is stored in UTF-16 or in the message's code page."""
        unicode_text = self._file.read(self.stream(number, "001F")).decode("utf-16-le", "replace")
        encoded_text = self._file.read(self.stream(number, "001E"))
        return (unicode_text or (decode_text(encoded_text, self._charset) if encoded_text else "")).strip("\0")

    def binary(self, number: str) -> bytes:
        return self._file.read(self.stream(number, "0102"))

    def stream(self, number: str, kind: str) -> str:
        return f"{self._prefix}__substg1.0_{number}{kind}"

    def time(self, number: int) -> str:
        """Return a time in UTC, or "" if there is none."""
        ticks = self._value(number, "<Q")
        try:
            return (EPOCH + dt.timedelta(microseconds=ticks // 10)).strftime("%Y-%m-%d %H:%M:%S UTC") if ticks else ""
        except OverflowError:
            return ""

    def _number(self, number: int) -> int:
        return self._value(number, "<I")

    def _value(self, number: int, form: str) -> int:
        # After the header come entries of 16 bytes: type, id, flags, value.
        for at in range(HEAD_BYTES, len(self._fixed) - 15, 16):
            if struct.unpack_from("<H", self._fixed, at + 2)[0] == number:
                return int(struct.unpack_from(form, self._fixed, at + 8)[0])
        return 0


def _add_body(message: Properties, output: TextCollector) -> None:
    # Plain text is preferred, then HTML (stored as bytes or as text), then RTF.
    if text := message.text(BODY):
        add_body(text, False, output)
    elif page := message.binary(HTML):
        detected = find_text(page, whole=True)
        add_body(decode_text(page, detected.encoding if detected else None), True, output)
    elif page_text := message.text(HTML):
        add_body(page_text, True, output)
    elif rich := message.binary(RTF):
        add_rtf(decompress_rtf(rich), output)


def _attachments(file: CompoundFile) -> Iterator[str]:
    prefixes = sorted({name.partition("/")[0] for name in file.names if name.startswith("__attach_version1.0_")})
    for prefix in prefixes:
        attachment = Properties(file, f"{prefix}/")
        embedded = Properties(file, f"{prefix}/__substg1.0_3701000D/")
        name = attachment.text(FILE_NAME) or attachment.text(SHORT_NAME) or embedded.text(SUBJECT)
        yield attachment_line(name, attachment.text(FILE_TYPE), file.size(attachment.stream(FILE_DATA, "0102")))
