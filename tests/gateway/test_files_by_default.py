"""Without a content policy, /v1 delivers a file as text, as page images or converted, and reports every loss."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from artifacts.library import store_bytes
from artifacts.storage.content import build_file_part
from capabilities.actors import SYSTEM
from capabilities.core.message import FilePart
from routing_admin.gateway.media import bytes_part, count_pages
from tests.artifacts.samples import pdf
from tests.gateway.plane import chat_body, logged, post

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def file(data: bytes, filename: str, mime_type: str) -> dict[str, object]:
    return {"type": "file", "file": {"filename": filename, "file_data": build_data_url(data, mime_type)}}


def build_data_url(data: bytes, mime_type: str) -> str:
    return f"data:{mime_type};base64,{base64.b64encode(data).decode()}"


def picture(name: str, size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "navy").save(buffer, name)
    return buffer.getvalue()


def test_extracted_document_text_with_a_header_reaches_a_text_model(key):
    answer = post(key, chat_body(file(pdf("Total: 42"), "bill.pdf", "application/pdf"), model="echo-text"))
    assert answer.headers["x-routing-adaptation"] == "file=extracted"
    content = answer.json()["choices"][0]["message"]["content"]
    lead, reference, done, mark, text = (line.removeprefix("   > ") for line in content.splitlines()[2:7])
    assert lead == "工件内容 (bill.pdf):"
    assert reference.startswith("工件ID: artifact:")
    assert (done, mark, text) == ("处理方式: 已提取为文本，原为 PDF 文档", "[page 1]", "Total: 42")


def test_scan_reaches_a_vision_model_as_page_images(key):
    answer = post(key, chat_body(file(pdf("", ""), "scan.pdf", "application/pdf"), model="echo-vision"))
    assert answer.headers["x-routing-adaptation"] == "file=converted"
    assert answer.json()["choices"][0]["message"]["content"].count("- image, image/jpeg") == 2
    row = logged(answer.headers["x-request-id"])
    (delivery,) = row.attempts.last().deliveries
    assert (delivery["outcome"], delivery["shown"], delivery["reason"]) == ("converted", "converted", "no_text_found")


def test_undecodable_bytes_are_reported_in_the_prompt_the_header_and_the_log(key):
    log = "今天的天气很好。\n".encode() * 50 + b"\xff\xfe\n"
    answer = post(key, chat_body(file(log, "rotated.log", "text/plain"), model="echo-text"))
    assert answer.headers["x-routing-adaptation"] == "text=inlined:replaced"
    assert "[2 个字节无法按 UTF-8 解码，以 U+FFFD 代替]" in answer.json()["choices"][0]["message"]["content"]
    (delivery,) = logged(answer.headers["x-request-id"]).attempts.last().deliveries
    assert (delivery["shown"], delivery["loss"]["facts"]) == ("cut", {"count": 2})


def test_text_that_is_truncated_and_partly_undecodable_is_reported_as_both(key):
    log = "今天的天气很好。\n".encode() * 9_778 + b"\xff\xfe\n"
    answer = post(key, chat_body(file(log, "rotated.log", "text/plain"), model="echo-text"))
    assert answer.headers["x-routing-adaptation"] == "text=inlined:cut:replaced"
    (delivery,) = logged(answer.headers["x-request-id"]).attempts.last().deliveries
    assert (delivery["shown"], delivery["loss"]["facts"]) == ("cut", {"percent": 50, "count": 2})


def test_undecodable_bytes_of_a_web_page_are_reported_with_its_text(key):
    page = f"<html><body><h1>天气</h1><p>{'今天的天气很好。' * 50}".encode() + b"\xff\xfe</p></body></html>"
    answer = post(key, chat_body(file(page, "weather.html", "text/html"), model="echo-text"))
    assert answer.headers["x-routing-adaptation"] == "text=extracted:replaced"
    assert "[2 个字节无法按 UTF-8 解码，以 U+FFFD 代替]" in answer.json()["choices"][0]["message"]["content"]


def test_truncated_text_is_reported_in_the_header_and_the_log(key):
    answer = post(key, chat_body(file(b"word " * 17_600, "long.txt", "text/plain"), model="echo-text"))
    assert answer.headers["x-routing-adaptation"] == "text=inlined:cut"
    (delivery,) = logged(answer.headers["x-request-id"]).attempts.last().deliveries
    assert (delivery["shown"], delivery["loss"]["facts"]) == ("cut", {"percent": 50})


def test_inline_and_stored_documents_have_the_same_page_count(key):
    data = pdf(*["x"] * 610)
    inline = count_pages(bytes_part(data, "application/pdf", "long.pdf"))
    stored = build_file_part(store_bytes(SYSTEM, data, filename="long.pdf"))
    assert (inline.pages, stored.pages) == (610, 610)


def test_pages_are_counted_only_for_inline_documents(key):
    """The pages of a stored artifact were already counted when it was uploaded."""
    dot = bytes_part(picture("PNG", (2, 2)), "image/png", None)
    assert count_pages(dot) is dot
    known = FilePart(dot.kind, "application/pdf", pages=3)
    assert count_pages(known) is known
