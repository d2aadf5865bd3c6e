"""An unusable database is reported by every command in one line: what, where, what to do; no traceback, no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import NotSupportedError, OperationalError, connection

from routing_admin.platform.databases.addresses import postgresql_databases
from routing_admin.platform.databases.explaining import explain_failure

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2-and-more"
NOBODY = f"postgres://ann:{SECRET}@127.0.0.1:1/gateway"
ELSEWHERE = "127.0.0.1:1"
on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="asks a server: python -m tests.engines")


def failing(directory: Path, url: str, *words: str) -> str:
    """Run a command that must fail with status 1 and a single line; return the line."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROUTING_ADMIN_", "DJANGO"))}
    environment = inherited | {"DATABASE_URL": url, "ROUTING_ADMIN_DATA_DIR": str(directory)}
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.strip().splitlines()
    assert SECRET not in line
    return line


@pytest.mark.parametrize("words", [("serve",), ("bootstrap",), ("doctor",), ("migrate",), ("changepassword", "ann")])
def test_where_nobody_listens_the_address_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    """If the server is unreachable, every command names its address."""
    assert f"Nothing answers at {ELSEWHERE}. Start PostgreSQL" in failing(tmp_path, NOBODY, *words)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgres://ann:a/b@host/gateway", "a password is percent-encoded"),
        ("postgres://ann@host:many/gateway", "a password is percent-encoded"),
        ("postgres://ann@host", "it names no database"),
        ("postgres://ann@host/gateway?pool=3", "pool is no parameter"),
        ("mysql://ann@host/gateway", "an engine that is not served (mysql)"),
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str, words: str) -> None:
    """An invalid DATABASE_URL is rejected with the correct notation."""
    assert words in failing(tmp_path, url, "doctor")


def test_an_address_has_all_that_a_connection_needs() -> None:
    """Percent-encoding is decoded, libpq's parameters are passed on, and each alias has its own connections."""
    found = postgresql_databases("postgresql://ann:p%40ss@db.example:6432/my%20gateway?sslmode=require")
    assert list(found) == ["default", "logs"]
    one = found["logs"]
    assert (one["USER"], one["PASSWORD"], one["HOST"], one["PORT"]) == ("ann", "p@ss", "db.example", "6432")
    assert (one["NAME"], one["OPTIONS"]["sslmode"]) == ("my gateway", "require")
    local = postgresql_databases("postgres:///gateway?host=/run/postgresql")["default"]
    assert (local["HOST"], local["PORT"], local["NAME"]) == ("/run/postgresql", "", "gateway")


@pytest.mark.parametrize(
    ("places", "hosts", "ports"),
    [
        ("db1,db2", "db1,db2", "5432,5432"),
        ("db1:5433,db2", "db1,db2", "5433,5432"),
        ("db1:1,[::1]:2,db3:3", "db1,::1,db3", "1,2,3"),
    ],
)
def test_several_hosts_lead_to_the_one_that_takes_writes(places: str, hosts: str, ports: str) -> None:
    """With several hosts `target_session_attrs` is `read-write` by default, and a password is no part of a host."""
    one = postgresql_databases(f"postgres://ann:p,%40@{places}/gateway")["default"]
    assert (one["HOST"], one["PORT"], one["PASSWORD"]) == (hosts, ports, "p,@")
    assert one["OPTIONS"]["target_session_attrs"] == "read-write"
    any_one = postgresql_databases(f"postgres://ann@{places}/gateway?target_session_attrs=any")["default"]
    assert any_one["OPTIONS"]["target_session_attrs"] == "any"
    with pytest.raises(SystemExit, match="host or port cannot be read"):
        postgresql_databases(f"postgres://ann:secret@{places},/gateway")


def test_a_driver_that_is_missing_is_named_with_its_command() -> None:
    """If the driver is missing, the message names the command that installs it."""
    said = explain_failure(ImproperlyConfigured("Error loading psycopg2 or psycopg module"))
    assert said is not None
    assert "python -m pip install 'psycopg[binary,pool]'" in said


def test_what_is_our_own_fault_is_not_explained_away() -> None:
    """A bug is not explained as a database problem and keeps its traceback."""
    assert explain_failure(ValueError("no error of a database")) is None


@on_postgresql
def test_a_server_that_is_too_old_is_named_with_both_versions() -> None:
    said = explain_failure(NotSupportedError("PostgreSQL 15 or later is required (found 13.4)."))
    assert said is not None
    assert "is too old: PostgreSQL 15 or later is required (found 13.4). Upgrade it" in said


@on_postgresql
def test_a_wrong_password_and_an_unknown_database_are_told_apart(tmp_path: Path) -> None:
    """A wrong password and a missing database have different messages."""
    known = os.environ["DATABASE_URL"]
    user, _, rest = known.partition("@")
    wrong = f"{user.rpartition(':')[0]}:{SECRET}@{rest}"
    assert "refuses the user tests: wrong name or password" in failing(tmp_path, wrong, "doctor")
    unknown = f"{known.rpartition('/')[0]}/nowhere"
    assert "There is no database nowhere at" in failing(tmp_path, unknown, "serve")


@on_postgresql
def test_a_server_does_not_begin_without_its_tables(tmp_path: Path) -> None:
    """Without tables a command fails and names the command that creates them."""
    empty = os.environ["DATABASE_URL"]
    assert "Run: python manage.py bootstrap" in failing(tmp_path, empty, "serve")
    assert "Run: python manage.py bootstrap" in failing(tmp_path, empty, "issue_agent_key", "text-agent")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("server does not support SSL, but SSL was required", "speaks no TLS, for which DATABASE_URL asks"),
        ("SSL error: certificate verify failed", "?sslrootcert=/path/to/ca.pem"),
        ('no pg_hba.conf entry for host "10.0.0.9", no encryption', "Add ?sslmode=require"),
    ],
)
@on_postgresql
def test_what_is_wrong_with_tls_is_told_apart(said: str, words: str) -> None:
    """A server without TLS, an untrusted certificate, and missing TLS settings have different messages."""
    line = explain_failure(OperationalError(said))
    assert line is not None
    assert words in line


@on_postgresql
def test_a_process_that_serves_hears_why_there_is_no_connection() -> None:
    """A pool reports the driver's reason, not only that it has no connection."""
    script = (
        "import django; django.setup(); from django.db import connection; "
        "from routing_admin.platform.databases.explaining import pool_connections; "
        "from routing_admin.platform.databases.explaining import explain_failure\n"
        "pool_connections()\n"
        "for _ in range(2):\n"
        "    try: connection.ensure_connection()\n"
        "    except Exception as error: print(explain_failure(error))\n"
        "connection.close_pool()"
    )
    environment = os.environ | {"DATABASE_URL": NOBODY, "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith(f"Nothing answers at {ELSEWHERE}."), done.stderr
