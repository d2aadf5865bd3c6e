"""Fixtures for the text extraction tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.extract import extract_text
from capabilities.core.message import Text


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[[bytes], Path]:

    def write(data: bytes) -> Path:
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def read(write_file: Callable[[bytes], Path]) -> Callable[[bytes, str], Text | None]:

    def read(data: bytes, mime: str) -> Text | None:
        return extract_text(write_file(data), mime)

    return read
