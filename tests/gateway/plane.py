"""Calls to the demo installation and what the log kept of them; who calls stands in tests/cast.py."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.test import Client

from routing_admin.models import RequestLog
from routing_admin.request_log.journal import journal
from tests.engines.databases import is_postgresql
from tests.engines.others import other_connection

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


def post(key: str, body: Any, path: str = "/v1/chat/completions", **headers: str) -> Any:
    """A call by a synchronous client."""
    data = body if isinstance(body, bytes) else json.dumps(body)
    sent = {"authorization": f"Bearer {key}", **headers} if key else headers
    return Client().post(path, data, content_type="application/json", headers=sent)


def said(*content: Any, model: str = "task:planning", **more: Any) -> dict[str, Any]:
    """A chat request of one user message."""
    parts = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return {"model": model, "messages": [{"role": "user", "content": parts}], **more}


def image(url: str = PNG_URL) -> dict[str, Any]:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": url}}


def logged(request_id: str) -> RequestLog:
    """The request's row, once the journal is written."""
    journal().flush()
    return RequestLog.objects.using("logs").get(pk=request_id)


def elsewhere(*statements: str) -> None:
    """What another process commits to the main database."""
    with other_connection() as other:
        other.execute("BEGIN")
        for each in statements:
            other.execute(each)
        other.execute("COMMIT")


@contextmanager
def without(*tables: str) -> Iterator[None]:
    """The database while those tables cannot be read: they are not there, or on PostgreSQL somebody holds them."""
    if is_postgresql():
        with other_connection() as other:
            other.execute(f"BEGIN; LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
            yield
        return
    elsewhere(*(f"ALTER TABLE {each} RENAME TO away_{each}" for each in tables))
    try:
        yield
    finally:
        elsewhere(*(f"ALTER TABLE away_{each} RENAME TO {each}" for each in tables))
