"""Extract text from e-mails and saved web pages: headers, body, list of attachments, and forwarded messages.

The standard library parses EML and MHT. The `outlook` module parses Outlook's MSG. Runs only in the extraction process.
"""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from itertools import islice
from typing import BinaryIO

from artifacts.core.detection.encodings import decode_blocks, detect_text
from artifacts.extract.reading import Progress, RefusedError, TextCollector
from artifacts.extract.webpage import VisibleTextParser

MAX_BYTES = 64 * 1024 * 1024
MAX_ATTACHMENTS = 500
MAX_HEADER_CHARS = 2_000
MAX_DEPTH = 8
"""Maximum nesting depth of forwarded messages that are read."""
HEADERS = ("From", "To", "Cc", "Reply-To", "Date", "Subject")


def eml(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the text of a message (RFC 5322) or saved web page to `output`.

    Raise `RefusedError` if the file is neither.
    """
    _add_message(_message(source), output, 0)


def eml_attachment(source: BinaryIO, number: int) -> tuple[str, str, bytes] | None:
    """Return the name, type and bytes of an attachment, given its number (from 1), or None if it does not exist."""
    attachments = (part for part, is_body in _parts(_message(source)) if not is_body)
    part = next(islice(attachments, number - 1, None), None)
    if part is None:
        return None
    kind, name = part.get_content_type(), part.get_filename() or ""
    if kind != "message/rfc822":
        data = part.get_payload(decode=True)
        return name, kind, data if isinstance(data, bytes) else b""
    inner = part.get_payload(0) if part.is_multipart() else None
    subject = _header(inner, "Subject") if isinstance(inner, EmailMessage) else ""
    return name or f"{subject or 'message'}.eml", kind, _message_bytes(inner)


def _message(source: BinaryIO) -> EmailMessage:
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    message = BytesParser(policy=policy.default).parsebytes(data)
    if not isinstance(message, EmailMessage) or not message.keys():
        raise RefusedError("unsupported")
    return message


def _add_message(message: EmailMessage, output: TextCollector, depth: int) -> None:
    for name in HEADERS:
        if value := _header(message, name):
            output.add(f"{name}: {value}\n")
    output.add("\n")
    attachments, forwarded = list[str](), list[tuple[str, EmailMessage]]()
    for part, is_body in _parts(message):
        if is_body:
            add_body(_decode_part(part), part.get_content_type() == "text/html", output)
            output.add_marker("\n")
        elif part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0) if part.is_multipart() else None
            subject = _header(inner, "Subject") if isinstance(inner, EmailMessage) else ""
            attachments.append(
                attachment_line(part.get_filename() or subject, "message/rfc822", len(_message_bytes(inner)))
            )
            if isinstance(inner, EmailMessage):
                forwarded.append((subject, inner))
        elif len(attachments) <= MAX_ATTACHMENTS:
            size = len(part.get_payload(decode=True) or b"")
            attachments.append(attachment_line(part.get_filename() or "", part.get_content_type(), size))
    add_attachments(attachments, output)
    for subject, inner in forwarded[:MAX_ATTACHMENTS] if depth < MAX_DEPTH else ():
        output.add_marker(message_heading(subject))
        _add_message(inner, output, depth + 1)


def message_heading(subject: str) -> str:
    """Return the heading of an e-mail that is attached to another one."""
    return f"\n\n[attached message: {' '.join(subject.split()) or 'unnamed'}]\n"


def add_body(text: str, is_html: bool, output: TextCollector) -> None:
    """Write the body of an e-mail to `output` without HTML markup."""
    if not is_html:
        output.add(text.replace("\r\n", "\n"))
        return
    page = VisibleTextParser(output)
    page.feed(text)
    page.close()


def add_attachments(lines: list[str], output: TextCollector) -> None:
    """Write a numbered list of attachments to `output`, without their content."""
    if lines:
        truncation_note = [f"(the first {MAX_ATTACHMENTS} of more)"] if len(lines) > MAX_ATTACHMENTS else []
        numbered = [f"{number}. {line}" for number, line in enumerate(lines[:MAX_ATTACHMENTS], 1)]
        output.add("\n\n[attachments]\n" + "\n".join([*numbered, *truncation_note]) + "\n")


def attachment_line(name: str, mime_type: str, size: int | None) -> str:
    facts = ", ".join(filter(None, (mime_type, "" if size is None else f"{size} bytes")))
    return f"{' '.join(name.split()) or 'unnamed'} ({facts})"


def _header(message: EmailMessage, name: str) -> str:
    # Malformed headers are common, so treat missing and unreadable headers as empty.
    try:
        return " ".join(str(message.get(name, "")).split())[:MAX_HEADER_CHARS]
    except Exception:  # The header parser may raise any exception on malformed headers.
        return ""


def _parts(part: EmailMessage, *, shown: bool = True) -> Iterator[tuple[EmailMessage, bool]]:
    # Yield each part that is not a container, with a flag that tells whether it belongs to the message text. Skip
    # alternative versions of the text.
    kind = part.get_content_type()
    if kind == "message/rfc822" or not part.is_multipart():
        is_text = kind in ("text/plain", "text/html") and not part.get_filename() and not part.is_attachment()
        if shown or not is_text:
            yield part, is_text
        return
    children = [child for child in part.get_payload() if isinstance(child, EmailMessage)]
    best = None
    if kind == "multipart/alternative":
        best = next(filter(None, (_find_with(children, form) for form in ("text/plain", "text/html"))), None)
    elif kind == "multipart/related":
        best = children[0] if children else None
    for child in children:
        yield from _parts(child, shown=shown and (best is None or child is best))


def _find_with(children: list[EmailMessage], form: str) -> EmailMessage | None:
    # Mail clients that write HTML often leave the plain text version empty.
    for child in children:
        for leaf in child.walk():
            if leaf.get_content_type() == form and isinstance(leaf, EmailMessage) and _decode_part(leaf).strip():
                return child
    return None


def _message_bytes(message: object) -> bytes:
    try:
        return message.as_bytes() if isinstance(message, EmailMessage) else b""
    except Exception:  # The generator may raise any exception on malformed mail, and only the length is needed.
        return b""


def _decode_part(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return decode_text(data, part.get_content_charset())


def decode_text(data: bytes, charset: str | None) -> str:
    """Decode bytes by the declared charset if possible, otherwise by the detected one."""
    # Use a superset of the declared charset, which can decode additional bytes.
    declared = {"gb2312": "gb18030", "gbk": "gb18030", "us-ascii": "utf-8"}.get((charset or "").lower(), charset)
    try:
        return data.decode(declared or "utf-8")
    except (LookupError, UnicodeError):
        detected = detect_text(data, whole=True)
        return "".join(decode_blocks((data,), detected.encoding if detected else "utf-8"))
