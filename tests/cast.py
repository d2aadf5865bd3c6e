"""The tests' users and agents: users with their browsers, agents with their keys, and the demo data they share.

Their fixtures are in conftest.py.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DEFAULT_DB_ALIAS, connection, router, transaction
from django.http import HttpResponse
from django.test import Client

from capabilities.actors import SYSTEM, Actor
from capabilities.core.permissions import ADMIN_SCOPES
from capabilities.models import Agent
from capabilities.runtime import renew, runtime
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import issue_key, save_agent
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.console.demo import load
from routing_admin.console.people.actions import issue_token
from routing_admin.models import Person

HTMX = {"HX-Request": "true"}
"""The header that htmx sends when it requests a fragment of a page."""

PASSWORD = "correct horse battery staple"  # The password of users who exist only for one test.


COPY_SECONDS = 60.0
"""Maximum age in seconds of cached demo rows. Pages show relative times, so older rows are replaced."""

Rows = Mapping[str, list[tuple[Any, ...]]]
"""Maps a table's name to the table's rows."""


@dataclass
class _LoadedDemo:
    rows: Rows
    until: float
    environment: Mapping[str, str]
    """The environment when the snapshot was built, because the snapshot contains providers' keys from it."""
    snapshot: Snapshot


_loaded: list[_LoadedDemo] = []


def load_demo() -> None:
    """Load the demo's rows, after clearing what other tests left in this process's caches.

    If the tables are empty, reuse the rows and the snapshot of an earlier load, which takes a hundredth of the time.
    """
    renew()
    now, environment = time.monotonic(), _environment()
    newest = next((demo for demo in _loaded if now < demo.until and demo.environment == environment), None)
    if newest is not None and not any(_read_rows(newest.rows).values()):
        _insert(newest.rows)
        # A real load reads the configuration, too, because a process without one is not ready.
        known = [newest.snapshot]
        cache = StampedCache(lambda: known.pop() if known else snapshot.build(), snapshot.stamp)
        runtime().made[snapshot.newest] = cache
        cache.current()
        return
    models = apps.get_models(include_auto_created=True)
    tables = [model._meta.db_table for model in models if router.db_for_write(model) == DEFAULT_DB_ALIAS]
    before = _read_rows(tables)
    load.load()
    changed = {table: rows for table, rows in _read_rows(tables).items() if rows != before[table]}
    if not any(before[table] for table in changed):
        _loaded[:] = [_LoadedDemo(changed, now + COPY_SECONDS, environment, snapshot.refresh())]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _read_rows(tables: Iterable[str]) -> Rows:
    rows = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            rows[table] = cursor.fetchall()
    return rows


def _insert(rows_of_tables: Rows) -> None:
    # Use one transaction, because rows refer to rows of tables that are filled later. On PostgreSQL, the sequences are
    # already past the copied ids, since a rollback does not reset them.
    with transaction.atomic(), connection.cursor() as cursor:
        for table, rows in rows_of_tables.items():
            marks = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)


def person(name: str, *, is_editor: bool = False, **role: Any) -> Any:
    """Create an account with a password: a viewer, an administrator with `is_staff`, or an editor with `is_editor`."""
    account = get_user_model().objects.create_user(name, password=PASSWORD, **role)
    if is_editor:
        Person.objects.create(user=account, is_editor=True)
    return account


def open_browser(account: Any = None, **options: Any) -> Client:
    """Return a browser without JavaScript, signed in if an account is given."""
    client = Client(**options)
    if account is not None:
        client.force_login(account)
    return client


def limit_agent(agent: str = "text-agent", /, **limits: Any) -> None:
    """Set an agent's limits, which have the same names as in the API."""
    row = Agent.objects.get(agent_id=agent)
    row.limits = limits
    save_agent(SYSTEM, row)


def create_key(agent: str, **options: Any) -> str:
    key, _ = issue_key(SYSTEM, Agent.objects.get(agent_id=agent), label="test", **options)
    return str(key)


def create_token(owner: Any, *scopes: str, name: str = "deploy") -> str:
    """Issue an administrator's token, by default with every scope."""
    token, _ = issue_token(Actor("person", owner.get_username()), owner, name, scopes or ADMIN_SCOPES)
    return str(token)


def join_pieces(answer: Any) -> Any:
    """Return a copy of the streamed JSON response with its chunks joined into one body."""
    joined: Any = HttpResponse(b"".join(answer.streaming_content), status=answer.status_code, headers=answer.headers)
    joined.json = lambda: json.loads(joined.content)
    return joined


@dataclass
class AgentProgram:
    """An agent's client program, which calls `/api/v1` with the agent's key."""

    agent: str
    key: str

    def __post_init__(self) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {self.key}"}

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        headers = {**self.headers, **options.pop("headers", {})}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = self.client.generic(
            method, f"/api/v1{path}", data, "application/json", headers=headers, query_params=options or None
        )
        return join_pieces(answer) if answer.streaming and "json" in answer["content-type"] else answer

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, **query)

    def post(self, path: str, body: Any, **options: Any) -> Any:
        return self.call("POST", path, body, **options)

    def upload(self, name: str, data: bytes, kind: str = "application/octet-stream", **fields: Any) -> Any:
        file = SimpleUploadedFile(name, data, content_type=kind)
        return self.client.post("/api/v1/artifacts", {**fields, "file": file}, headers=self.headers)

    def stored(self, name: str, data: bytes, kind: str = "application/octet-stream", **fields: Any) -> dict[str, Any]:
        response = self.upload(name, data, kind, **fields)
        assert response.status_code == 201, response.content
        return dict(response.json())

    def artifact(self, ref: str, **query: Any) -> dict[str, Any]:
        response = self.get(f"/artifacts/{ref}", **query)
        assert response.status_code == 200, response.content
        return dict(response.json())
