"""Every command reports an unusable database in one line that says what to do and contains no secret."""

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
from tests.preloaded import run_python

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2-and-more"
UNREACHABLE = f"postgres://ann:{SECRET}@127.0.0.1:1/gateway"
UNREACHABLE_ADDRESS = "127.0.0.1:1"
on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="asks a server: python -m tests.engines")


def error_line(directory: Path, url: str, *arguments: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROUTING_ADMIN_", "DJANGO"))}
    environment = inherited | {"DATABASE_URL": url, "ROUTING_ADMIN_DATA_DIR": str(directory)}
    result = run_python(environment, "manage.py", *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.strip().splitlines()
    assert SECRET not in line
    return line


@pytest.mark.parametrize(
    "arguments", [("serve",), ("bootstrap",), ("doctor",), ("migrate",), ("changepassword", "ann")]
)
def test_unreachable_database_server_is_reported_with_its_address(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert f"Nothing answers at {UNREACHABLE_ADDRESS}. Start PostgreSQL" in error_line(
        tmp_path, UNREACHABLE, *arguments
    )


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgres://ann:a/b@host/gateway", "a password is percent-encoded"),
        ("postgres://ann@host:many/gateway", "a password is percent-encoded"),
        ("postgres://ann@host", "it names no database"),
        ("postgres://ann@host/gateway?pool=3", "pool is no parameter"),
        ("mysql://ann@host/gateway", "an engine that is not served (mysql)"),
    ],
)
def test_invalid_database_url_is_rejected(tmp_path: Path, url: str, sentence: str) -> None:
    assert sentence in error_line(tmp_path, url, "doctor")


def test_database_url_is_parsed_into_connection_settings() -> None:
    """Percent-encoding is decoded, and libpq's parameters are passed on."""
    databases = postgresql_databases("postgresql://ann:p%40ss@db.example:6432/my%20gateway?sslmode=require")
    assert list(databases) == ["default", "logs"]
    logs = databases["logs"]
    assert (logs["USER"], logs["PASSWORD"], logs["HOST"], logs["PORT"]) == ("ann", "p@ss", "db.example", "6432")
    assert (logs["NAME"], logs["OPTIONS"]["sslmode"]) == ("my gateway", "require")
    local = postgresql_databases("postgres:///gateway?host=/run/postgresql")["default"]
    assert (local["HOST"], local["PORT"], local["NAME"]) == ("/run/postgresql", "", "gateway")


@pytest.mark.parametrize(
    ("addresses", "hosts", "ports"),
    [
        ("db1,db2", "db1,db2", "5432,5432"),
        ("db1:5433,db2", "db1,db2", "5433,5432"),
        ("db1:1,[::1]:2,db3:3", "db1,::1,db3", "1,2,3"),
    ],
)
def test_database_url_with_several_hosts_selects_the_writable_host(addresses: str, hosts: str, ports: str) -> None:
    """Commas separate hosts, but a password may also contain a comma."""
    default = postgresql_databases(f"postgres://ann:p,%40@{addresses}/gateway")["default"]
    assert (default["HOST"], default["PORT"], default["PASSWORD"]) == (hosts, ports, "p,@")
    assert default["OPTIONS"]["target_session_attrs"] == "read-write"
    any_host = postgresql_databases(f"postgres://ann@{addresses}/gateway?target_session_attrs=any")["default"]
    assert any_host["OPTIONS"]["target_session_attrs"] == "any"
    with pytest.raises(SystemExit, match="host or port cannot be read"):
        postgresql_databases(f"postgres://ann:secret@{addresses},/gateway")


def test_missing_driver_is_reported_with_the_install_command() -> None:
    explanation = explain_failure(ImproperlyConfigured("Error loading psycopg2 or psycopg module"))
    assert explanation is not None
    assert "python -m pip install 'psycopg[binary,pool]'" in explanation


def test_bug_is_not_explained_as_a_database_problem() -> None:
    assert explain_failure(ValueError("no error of a database")) is None


@on_postgresql
def test_outdated_postgresql_is_reported_with_both_versions() -> None:
    explanation = explain_failure(NotSupportedError("PostgreSQL 15 or later is required (found 13.4)."))
    assert explanation is not None
    assert "is too old: PostgreSQL 15 or later is required (found 13.4). Upgrade it" in explanation


@on_postgresql
def test_wrong_password_and_unknown_database_have_different_messages(tmp_path: Path) -> None:
    url = os.environ["DATABASE_URL"]
    user, _, rest = url.partition("@")
    wrong = f"{user.rpartition(':')[0]}:{SECRET}@{rest}"
    assert "refuses the user tests: wrong name or password" in error_line(tmp_path, wrong, "doctor")
    unknown = f"{url.rpartition('/')[0]}/nowhere"
    assert "There is no database nowhere at" in error_line(tmp_path, unknown, "serve")


@on_postgresql
def test_commands_without_database_tables_suggest_bootstrap(tmp_path: Path) -> None:
    empty = os.environ["DATABASE_URL"]
    assert "Run: routing-admin bootstrap" in error_line(tmp_path, empty, "serve")
    assert "Run: routing-admin bootstrap" in error_line(tmp_path, empty, "issue_agent_key", "text-agent")


@pytest.mark.parametrize(
    ("driver_message", "sentence"),
    [
        ("server does not support SSL, but SSL was required", "speaks no TLS, for which DATABASE_URL asks"),
        ("SSL error: certificate verify failed", "?sslrootcert=/path/to/ca.pem"),
        ('no pg_hba.conf entry for host "10.0.0.9", no encryption', "Add ?sslmode=require"),
    ],
)
@on_postgresql
def test_tls_problems_have_different_messages(driver_message: str, sentence: str) -> None:
    explanation = explain_failure(OperationalError(driver_message))
    assert explanation is not None
    assert sentence in explanation


@on_postgresql
def test_connection_pool_reports_the_error_of_the_driver() -> None:
    """Without the driver's reason, the pool would only report that it has no connection."""
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
    environment = os.environ | {"DATABASE_URL": UNREACHABLE, "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1].startswith(f"Nothing answers at {UNREACHABLE_ADDRESS}."), result.stderr
