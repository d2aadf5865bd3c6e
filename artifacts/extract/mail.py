"""Extract text from e-mail and saved web pages: headers, body and a list of attachments.

EML and MHT are read with the standard library's parser, Outlook's MSG in `outlook`. Runs only in the child process.
"""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from itertools import islice
from typing import BinaryIO

from artifacts.core.detection.encodings import decode_blocks, find_text
from artifacts.extract.webpage import VisibleTextParser
from artifacts.extract.words import Progress, RefusedError, TextCollector

MAX_BYTES = 64 * 1024 * 1024
MAX_ATTACHMENTS = 500
MAX_HEADER_CHARS = 2_000
HEADERS = ("From", "To", "Cc", "Reply-To", "Date", "Subject")


def eml(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add a message (RFC 5322), or a web page saved as a message; raise `RefusedError` for anything else."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    message = BytesParser(policy=policy.default).parsebytes(data)
    if not isinstance(message, EmailMessage) or not message.keys():
        raise RefusedError("unsupported")
    for name in HEADERS:
        if value := _header(message, name):
            output.add(f"{name}: {value}\n")
    output.add("\n")
    body = message.get_body(("plain", "html"))
    if isinstance(body, EmailMessage):
        add_body(_text_of(body), body.get_content_type() == "text/html", output)
    add_attachments(list(islice(_attachments(message, body), MAX_ATTACHMENTS + 1)), output)


def add_body(text: str, is_html: bool, output: TextCollector) -> None:
    """Add the body's text. HTML is added without its markup."""
    if not is_html:
        output.add(text.replace("\r\n", "\n"))
        return
    page = VisibleTextParser(output)
    page.feed(text)
    page.close()


def add_attachments(lines: list[str], output: TextCollector) -> None:
    """Add the list of attachments, one per line. Their content is not read."""
    if lines:
        truncation_note = [f"(the first {MAX_ATTACHMENTS} of more)"] if len(lines) > MAX_ATTACHMENTS else []
        output.add("\n\n[attachments]\n" + "\n".join([*lines[:MAX_ATTACHMENTS], *truncation_note]) + "\n")


def attachment_line(name: str, mime_type: str, size: int) -> str:
    return f"- {' '.join(name.split()) or 'unnamed'} ({', '.join(filter(None, (mime_type, f'{size} bytes')))})"


def _header(message: EmailMessage, name: str) -> str:
    # Malformed headers are common, so a header that is missing or unreadable counts as empty.
    try:
        return " ".join(str(message.get(name, "")).split())[:MAX_HEADER_CHARS]
    except Exception:  # the header parser may raise anything on malformed headers
        return ""


def _attachments(message: EmailMessage, body: object) -> Iterator[str]:
    # A part is an attachment if it is neither the body, nor an alternative of the body, nor a container.
    nested: set[int] = set()
    for part in message.walk():
        if id(part) in nested or part is body or not isinstance(part, EmailMessage):
            continue
        if part.get_content_type() == "message/rfc822":
            nested.update(id(child) for child in part.walk())
        elif part.is_multipart() or _is_alternative_body(part):
            continue
        subject = _header(part.get_content(), "Subject") if part.get_content_type() == "message/rfc822" else ""
        size = len(part.get_payload(decode=True) or b"") or len(part.as_bytes()) * bool(subject)
        yield attachment_line(part.get_filename() or subject, part.get_content_type(), size)


def _is_alternative_body(part: EmailMessage) -> bool:
    return part.get_content_maintype() == "text" and not part.get_filename() and not part.is_attachment()


def _text_of(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return decode_text(data, part.get_content_charset())


def decode_text(data: bytes, charset: str | None) -> str:
    """Decode bytes by the declared charset if it fits, else by detection."""
    # The supersets decode everything that the declared charset decodes, and more.
    declared = {"gb2312": "gb18030", "gbk": "gb18030", "us-ascii": "utf-8"}.get((charset or "").lower(), charset)
    try:
        return data.decode(declared or "utf-8")
    except (LookupError, UnicodeError):
        detected = find_text(data, whole=True)
        return "".join(decode_blocks((data,), detected.encoding if detected else "utf-8"))
