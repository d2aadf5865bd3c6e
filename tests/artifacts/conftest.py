"""Fixtures for the tests of text extraction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.extract import extract_text
from capabilities.core.message import Text


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[bytes], Path]:

    def keep(data: bytes) -> Path:
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return keep


@pytest.fixture
def read(kept: Callable[[bytes], Path]) -> Callable[[bytes, str], Text | None]:

    def read(data: bytes, mime: str) -> Text | None:
        return extract_text(kept(data), mime)

    return read
