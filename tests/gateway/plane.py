"""Calls to the demo installation and the resulting log rows. The agents and their keys are in tests/cast.py."""

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
    data = body if isinstance(body, bytes) else json.dumps(body)
    sent = {"authorization": f"Bearer {key}", **headers} if key else headers
    return Client().post(path, data, content_type="application/json", headers=sent)


def chat_body(*content: Any, model: str = "task:planning", **more: Any) -> dict[str, Any]:
    parts = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return {"model": model, "messages": [{"role": "user", "content": parts}], **more}


def image(url: str = PNG_URL) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def answer_text(response: Any) -> str:
    """Return the text of a successful chat response."""
    assert response.status_code == 200, response.content
    return str(response.json()["choices"][0]["message"]["content"])


def logged(request_id: str) -> RequestLog:
    """Flush the journal and return the request's log row."""
    journal().flush()
    return RequestLog.objects.using("logs").get(pk=request_id)


def execute_in_other_connection(*statements: str) -> None:
    with other_connection() as connection:
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement)
        connection.execute("COMMIT")


@contextmanager
def unreadable_tables(*tables: str) -> Iterator[None]:
    """Make these tables unreadable: on SQLite, rename them; on PostgreSQL, lock them from another connection."""
    if is_postgresql():
        with other_connection() as connection:
            connection.execute(f"BEGIN; LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
            yield
        return
    execute_in_other_connection(*(f"ALTER TABLE {table} RENAME TO away_{table}" for table in tables))
    try:
        yield
    finally:
        execute_in_other_connection(*(f"ALTER TABLE away_{table} RENAME TO {table}" for table in tables))
