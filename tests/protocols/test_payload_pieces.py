"""A request body's length is known before its files are read, and the body is valid JSON."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import Blob
from capabilities.core.wire import MediaData, UpstreamRequest, base64_blocks, elide
from tests.protocols.exchange import join_body

BLOCKS = st.lists(st.binary(max_size=50), max_size=6)
TEXTS = st.text(max_size=30)


def blob(blocks: list[bytes]) -> Blob:
    return Blob(sum(map(len, blocks)), lambda: iter(blocks))


@given(BLOCKS)
def test_base64_of_blocks_joins_to_base64_of_all_bytes(blocks: list[bytes]) -> None:
    """Joined, base64 blocks of any size equal the base64 of all bytes. They can be read more than once."""
    content = blob(blocks)
    expected = base64.b64encode(b"".join(blocks))
    assert b"".join(base64_blocks(content)) == expected
    assert b"".join(base64_blocks(content)) == expected
    assert MediaData(content).length == len(expected)


@given(
    files=st.lists(BLOCKS, max_size=4),
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    prefix=st.sampled_from(["", "data:x;base64,"]),
)
def test_content_length_matches_the_body_and_the_body_matches_the_payload(
    files: list[list[bytes]], texts: list[str], prefix: str
) -> None:
    """For any texts and files, Content-Length is exact, and the body is JSON with each file in its place."""
    payload = {"texts": texts, "files": [{"data": MediaData(blob(blocks), prefix)} for blocks in files]}
    request = UpstreamRequest("http://h", {}, payload)
    body = join_body(request)
    assert len(body) == request.content_length
    expected_files = [{"data": prefix + base64.b64encode(b"".join(blocks)).decode()} for blocks in files]
    assert json.loads(body) == {"texts": texts, "files": expected_files}


@given(BLOCKS)
def test_payload_preview_replaces_file_bytes_by_their_size(blocks: list[bytes]) -> None:
    """The preview shows the beginning of a file's data and its size."""
    size = sum(map(len, blocks))
    preview = elide({"a": [MediaData(blob(blocks), "data:image/png;base64,")]})
    assert preview == {"a": [f"data:image/png;base64,<{size} bytes>"]}
