"""A pytest plugin for openai-python's own tests: the client gets a real key, and `file_id` becomes a real file.

The tests are written for a mock server that accepts any key and knows any file. A call to `/files/file_id` is changed
to name a stored file, so that our server gives its real response.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx2
import openai
import pytest

URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
PLACEHOLDER = "/files/file_id"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Replace the values from which the fixtures create clients.

    The fixtures are written for a mock server that needs neither a key nor a file.
    """
    conftest: Any = sys.modules["tests.conftest"]
    conftest.api_key = KEY
    conftest.DefaultHttpx2Client = lambda: openai.DefaultHttpx2Client(event_hooks={"request": [name_a_file]})
    conftest.DefaultAsyncHttpx2Client = lambda: openai.DefaultAsyncHttpx2Client(event_hooks=ASYNC_HOOKS)
    conftest.DefaultAioHttpClient = lambda: openai.DefaultAioHttpClient(event_hooks=ASYNC_HOOKS)


def name_a_file(request: Any) -> None:
    """In a request that httpx or httpx2 sends, replace the placeholder with a new file's id."""
    if PLACEHOLDER in request.url.path:
        request.url = type(request.url)(str(request.url).replace(PLACEHOLDER, f"/files/{stored_file()}"))


async def name_a_file_later(request: Any) -> None:
    name_a_file(request)


ASYNC_HOOKS: Any = {"request": [name_a_file_later]}


def stored_file() -> str:
    files = {"file": ("example.txt", b"Example data")}
    headers = {"authorization": f"Bearer {KEY}"}
    answer = httpx2.post(f"{URL}/files", headers=headers, data={"purpose": "user_data"}, files=files)
    file: dict[str, str] = json.loads(answer.content)
    return file["id"]
