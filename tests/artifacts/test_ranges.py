"""A single byte range of a stored file can be requested, so that players can seek."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import UnsatisfiableRangeError, parse_range, take_bytes
from capabilities.actors import SYSTEM

DATA = bytes(range(100))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", None),
        ("bytes=0-", (0, 100)),
        ("bytes=10-19", (10, 20)),
        ("bytes=90-500", (90, 100)),
        ("bytes=-5", (95, 100)),
        ("bytes=-500", (0, 100)),
        ("bytes=0-0,5-9", None),
        ("bytes=9-5", None),
        ("bytes=-", None),
        ("items=0-5", None),
        # Non-ASCII digits are invalid.
        ("bytes=०-९", None),
    ],
)
def test_range_header_is_parsed(header: str, expected: tuple[int, int] | None) -> None:
    """A header that is not a valid single range (RFC 9110 §14) is ignored, so that the whole file is sent."""
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize(("header", "size"), [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=0-", 0)])
def test_range_past_the_end_is_an_error(header: str, size: int) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_range(header, size)


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=9), st.integers(1, 90))
def test_blocks_are_truncated_at_the_end_of_the_range(blocks: list[bytes], count: int) -> None:
    def stream() -> Iterator[bytes]:
        yield from blocks

    assert b"".join(take_bytes(stream(), count)) == b"".join(blocks)[:count]


@pytest.fixture
def row(db: None) -> Artifact:
    return store_bytes(SYSTEM, DATA, filename="data.bin")


def fetch_range(client: Client, row: Artifact, **headers: str) -> tuple[int, str, bytes]:
    response = client.get(reverse("artifact_raw", args=[row.pk]), headers=headers)
    return response.status_code, response.get("Content-Range", ""), response.getvalue()


@pytest.mark.django_db
def test_range_is_returned_unless_if_range_does_not_match(admin: Client, row: Artifact) -> None:
    assert fetch_range(admin, row) == (200, "", DATA)
    assert fetch_range(admin, row, range="bytes=10-19") == (206, "bytes 10-19/100", DATA[10:20])
    assert fetch_range(admin, row, range="bytes=200-") == (416, "bytes */100", b"")
    tag = fetch_etag(admin, row)
    assert fetch_range(admin, row, range="bytes=10-19", if_range=tag)[0] == 206
    assert fetch_range(admin, row, range="bytes=10-19", if_range='"other"') == (200, "", DATA)


def fetch_etag(client: Client, row: Artifact) -> str:
    return str(client.get(reverse("artifact_raw", args=[row.pk]))["ETag"])
