"""Mail in every format is extracted as text: headers, body and a list of attachments."""

from __future__ import annotations

import struct
from email.message import EmailMessage

import pytest
from compound_files import build_compound_file, msg, msg_properties
from samples import MHT

from capabilities.core.message import Text

EML, MHTML, MSG = "message/rfc822", "multipart/related", "application/vnd.ms-outlook"


def mail(body: str = "Hello\n") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "Ann <ann@example.com>", "ben@example.com"
    message["Subject"], message["Date"] = "计划 and more", "Sun, 22 Nov 2026 10:00:00 +0100"
    message["X-Trace"] = "a trace"
    message.set_content(body)
    return message


HEAD = "From: Ann <ann@example.com>\nTo: ben@example.com\nDate: Sun, 22 Nov 2026 10:00:00 +0100\nSubject: 计划 and more"


def test_mail_has_headers_body_and_a_list_of_attachments(read) -> None:
    message = mail()
    message.add_alternative("<p>Hello</p>", subtype="html")
    message.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="数据.csv")
    message.add_attachment(mail("Inner"))
    listed = f"1. 数据.csv (text/csv, 4 bytes)\n2. 计划 and more (message/rfc822, {len(bytes(mail('Inner')))} bytes)"
    inner = f"[attached message: 计划 and more]\n{HEAD}\n\nInner"
    assert read(bytes(message), EML) == Text(f"{HEAD}\n\nHello\n\n[attachments]\n{listed}\n\n{inner}", "eml")


def test_html_only_mail_is_read_without_markup(read) -> None:
    message = mail()
    message.set_content("<style>p{}</style><p>Hi <b>you</b></p>", subtype="html")
    assert read(bytes(message), EML).text.endswith("\n\nHi you")


def test_mail_is_decoded_by_its_declared_charset_or_by_detection(read) -> None:
    for charset, declared in (("gb2312", "gb2312"), ("iso-2022-jp", "iso-2022-jp"), ("utf-8", "unknown-9")):
        head = f"Subject: x\r\nContent-Type: text/plain; charset={declared}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
        assert read(head.encode() + "今日".encode(charset), EML).text == "Subject: x\n\n今日"


def test_saved_web_page_is_read_like_mail(read) -> None:
    expected = "Subject: A page\n\nCafé\n\n[attachments]\n1. unnamed (image/png, 8 bytes)"
    assert read(MHT, MHTML) == Text(expected, "mht")


def test_outlook_message_is_read_by_its_properties(read) -> None:
    expected = (
        "From: Ann <ann@example.com>\nTo: Ben\nDate: 2026-11-22 09:00:00 UTC\nSubject: 计划\n\nHello\nyou\n\n"
        "[attachments]\n1. 数据.csv (text/csv, 5 bytes)"
    )
    assert read(msg("计划", "Hello\r\nyou", "数据.csv"), MSG) == Text(expected, "msg")


def test_outlook_message_without_plain_text_is_read_from_html_or_rtf(read) -> None:
    """HTML is preferred to compressed RTF. The RTF is an example from MS-OXRTFCP."""
    page = {"__properties_version1.0": msg_properties(0), "__substg1.0_10130102": b"<p>Page</p>"}
    assert read(build_compound_file(page), MSG).text == "Page"
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    rich = {"__properties_version1.0": msg_properties(0), "__substg1.0_10090102": packed}
    assert read(build_compound_file(rich), MSG).text == "hello world"


def nested_mail(depth: int) -> bytes:
    parts = [f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n' for n in range(depth)]
    return ("Subject: x\r\n" + "".join(parts)).encode()


LOOP = bytearray(msg("a", "b", "c"))
# The last sector is the allocation table. After this change, the chain of each of the first four sectors leads to
# sector 0.
LOOP[-512:-496] = struct.pack("<4I", 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (nested_mail(5_000), EML),
        (b"", EML),
        (b"\0" * 5000, EML),
        (build_compound_file({"Other": b"x"}), MSG),
        (msg("a", "b", "c")[:1000], MSG),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2000, MSG),
    ],
    ids=["deep nesting", "empty", "noughts", "no message", "cut", "no chains"],
)
def test_file_that_is_not_mail_yields_none(read, data: bytes, mime: str) -> None:
    assert read(data, mime) is None


def test_circular_sector_chain_does_not_loop_forever(read) -> None:
    extracted = read(bytes(LOOP), MSG)
    assert extracted is None or len(extracted.text) < 10_000
