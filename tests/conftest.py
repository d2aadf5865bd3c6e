"""What all tests share: Hypothesis profiles, command-line options, and fixtures for users and agents (see cast.py)."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.core.management.commands import flush
from django.core.management.sql import sql_flush
from django.db import connection
from django.test import Client
from django.utils import translation
from hypothesis import HealthCheck, settings

from capabilities.core.permissions import SCOPES
from capabilities.runtime import renew
from routing_admin.configuration.audit import NOTED
from routing_admin.limits.reservations import keeper
from routing_admin.platform.databases.append_only import statements_to_allow
from tests.cast import AgentProgram, create_key, load_demo, open_browser, person
from tests.engines.redis import RedisServer, redis_running

if TYPE_CHECKING:
    from tests.gateway.asgi_caller import Loopback

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("deep", max_examples=200, deadline=None, suppress_health_check=QUIET)
settings.register_profile("slow", max_examples=2000, deadline=None, suppress_health_check=QUIET)
settings.register_profile("default", max_examples=25, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

FAST = {
    *("house", "capabilities", "planning", "protocols", "dispatch", "describing", "fallback", "prices", "limits"),
    *("test_plurals.py", "test_readme.py"),
}
"""Folders and files below tests/ in which `--fast` runs every test: repository checks and tests of `core` packages.

Elsewhere, it runs only tests marked `smoke`.
"""
NEEDS_MORE = {"db", "transactional_db", "live_server", "browser", "server", "served", "lab", "own_redis"}
"""Fixtures that are too slow for `--fast`.

Even in the folders of `FAST`, tests that use these fixtures run only if they are marked `smoke`.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run tests marked slow, too, and every law on 2,000 examples")
    parser.addoption("--fast", action="store_true", help="rules, cores and what is marked `smoke`")
    parser.addoption("--store", choices=["files", "s3"], default="files", help="s3: tests of stored bytes, in a bucket")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Exclude imported modules and collected tests from garbage collection, because they exist until the run ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--fast`, do not import files that contain no selected test."""
    if not config.getoption("--fast") or collection_path.suffix != ".py" or is_fast(collection_path):
        return None
    return "mark.smoke" not in collection_path.read_text("utf-8") or None


def is_fast(path: Path) -> bool:
    return path.relative_to(Path(__file__).parent).parts[0] in FAST


def pytest_configure(config: pytest.Config) -> None:
    flush.sql_flush = _flush_with_audit  # type: ignore[attr-defined]
    if config.getoption("--slow"):
        settings.load_profile("slow")


def _flush_with_audit(style: Any, connection: Any, **options: Any) -> list[str]:
    """Return Django's statements that empty the tables, preceded by statements that drop the audit log's triggers.

    The triggers would reject the deletions. The triggers are created again afterwards, as after every migration.
    """
    return [*statements_to_allow(connection.vendor), *sql_flush(style, connection, **options)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if connection.vendor != "sqlite":
        for item in items:
            if "sqlite" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="about SQLite's own files"))
    if config.getoption("--store") == "s3":
        chosen = [item for item in items if "both_stores" in item.keywords and "files_only" not in item.keywords]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    if config.getoption("--fast"):
        chosen = [
            item
            for item in items
            if "smoke" in item.keywords or (is_fast(item.path) and not NEEDS_MORE & set(item.fixturenames))
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


@pytest.fixture(autouse=True)
def _fresh_snapshot(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reset the configuration snapshot, since rolling back a test's rows does not invalidate it."""
    yield
    if (
        "db" in request.fixturenames
        or "transactional_db" in request.fixturenames
        or "django_db_setup" in request.fixturenames
    ):
        renew()
        (Path(configured.DATA_DIR) / NOTED).unlink(missing_ok=True)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Run a Redis server that several tests share, so no test may stop it."""
    with redis_running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """Run a separate Redis server for one test, which may stop and restart the server."""
    with redis_running(tmp_path) as server:
        yield server


@pytest.fixture(autouse=True)
def _default_language() -> Iterator[None]:
    """Deactivate the language that the test's requests activated."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _store(request: pytest.FixtureRequest) -> None:
    """With `--store s3`, give each test its own prefix in the bucket."""
    if request.config.getoption("--store") == "s3":
        from tests.engines.s3 import s3_server

        request.getfixturevalue("settings").ARTIFACTS_BUCKET = s3_server().new_prefix()


@pytest.fixture
def patient_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait longer for limit quotas, so that a busy machine does not cause a 503."""
    monkeypatch.setattr("routing_admin.limits.quota_client.WAIT_SECONDS", 60.0)


@pytest.fixture
def returned_quotas(db: None) -> Iterator[None]:
    """After the test, return the limit quotas that this process has reserved but not used."""
    yield
    keeper().stop()


@pytest.fixture
def loopback(demo: None) -> Iterator[Loopback]:
    """Create providers that call a real socket, which the test serves with `loopback.serve()`."""
    from tests.gateway.asgi_caller import loopback_providers

    with loopback_providers() as providers:
        yield providers


@pytest.fixture
def demo(db: None) -> None:
    load_demo()


@pytest.fixture
def admin_account(db: None) -> Any:
    return person("admin", is_staff=True)


@pytest.fixture
def viewer_account(db: None) -> Any:
    return person("vera")


@pytest.fixture
def admin(admin_account: Any) -> Client:
    return open_browser(admin_account)


@pytest.fixture
def viewer(viewer_account: Any) -> Client:
    return open_browser(viewer_account)


@pytest.fixture
def editor(db: None) -> Client:
    return open_browser(person("edith", is_editor=True))


@pytest.fixture
def anonymous() -> Client:
    return open_browser()


@pytest.fixture
def caller(demo: None) -> Callable[..., AgentProgram]:
    """Return a factory for simulated agents. Each has a new key, which has every scope by default."""

    def make(agent_id: str, *scopes: str) -> AgentProgram:
        return AgentProgram(agent_id, create_key(agent_id, scopes=scopes or SCOPES))

    return make


@pytest.fixture
def text_agent(caller: Callable[..., AgentProgram]) -> AgentProgram:
    return caller("text-agent")


@pytest.fixture
def vision_agent(caller: Callable[..., AgentProgram]) -> AgentProgram:
    return caller("vision-agent")


@pytest.fixture
def key(demo: None) -> str:
    return create_key("text-agent")
