"""Media inside a request is decoded strictly, without a second copy, and read like a stored file."""

from __future__ import annotations

import base64
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.decision import Outcome, decide
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.delivery.slot_choice import slots_for
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.media import CHUNK_CHARS, data_url_part, decode_base64


@given(data=st.binary(max_size=200), lead=st.text(max_size=10))
def test_base64_decoding_returns_the_encoded_bytes(data: bytes, lead: str) -> None:
    assert decode_base64(lead + base64.b64encode(data).decode(), "file", len(lead)) == data


def test_base64_text_decoded_in_chunks_returns_the_encoded_bytes() -> None:
    data = bytes(range(256)) * (CHUNK_CHARS // 200)
    assert decode_base64(base64.b64encode(data).decode(), "file") == data


@pytest.mark.parametrize("wrong", ["QQ==QQ==", "Q", "QQ=", "QQ==" + "A" * CHUNK_CHARS, "Q*==", "===="])
def test_invalid_base64_is_refused_with_its_path(wrong: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        decode_base64(wrong, "messages[0].content[1].file.data")
    assert refused.value.param == "messages[0].content[1].file.data"


def test_decoding_a_large_file_makes_one_copy() -> None:
    size = 12 * 1024 * 1024
    url = "data:application/octet-stream;base64," + base64.b64encode(bytes(size)).decode()
    tracemalloc.start()
    try:
        part = data_url_part(url, "file")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert part.size == size
    # The limit leaves room for one copy of the file and less than half of a second one.
    assert peak < 1.5 * size


def test_inline_web_page_is_extracted_as_text() -> None:
    """Under the delivery policy `extract`, an inline page is treated like a stored one."""
    page = b"<!doctype html><html><head><title>t</title></head><body><p>Hello <b>there</b></p></body></html>"
    part = data_url_part("data:text/html;base64," + base64.b64encode(page).decode(), "file")
    reader = Reader(slots=slots_for("openai"), policies=frozenset({ContentPolicy.EXTRACT}))
    assert decide(part, reader).outcome is Outcome.EXTRACTED
    assert "Hello there" in part.content.render().text


def test_inline_file_over_the_upload_limit_is_refused_before_decoding(settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES = 3000
    lead = "data:;base64,"
    assert len(decode_base64(lead + base64.b64encode(bytes(3000)).decode(), "file", len(lead))) == 3000
    with pytest.raises(BadRequestError) as refused:
        decode_base64(base64.b64encode(bytes(3010)).decode(), "file")
    assert (refused.value.status, refused.value.code) == (413, "file_too_large")
