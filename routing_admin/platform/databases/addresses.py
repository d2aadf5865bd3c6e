"""Parse `DATABASE_URL` into Django's `DATABASES`; error messages are one line and contain no secrets."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from routing_admin.environment import database_files

SCHEMES = ("postgres", "postgresql")
ENGINE = "routing_admin.platform.databases.postgresql"
CONNECT_SECONDS = 5
PARAMETERS = frozenset(
    {
        *("host", "port", "application_name", "connect_timeout", "options", "passfile", "service"),
        "target_session_attrs",
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "ssl_min_protocol_version"),
        *("channel_binding", "gssencmode", "krbsrvname", "keepalives", "keepalives_idle", "keepalives_interval"),
        *("keepalives_count", "tcp_user_timeout", "load_balance_hosts", "require_auth"),
    }
)
"""The libpq parameters that are allowed in the URL's query string."""
NAMED: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "routing_admin",
    # Detect a server that disappears without closing its connections.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Default values of some of these libpq parameters."""
POOL = {"min_size": 1, "max_size": 20, "num_workers": 2, "reconnect_timeout": 1.0, "max_idle": 300.0}
"""Settings of a serving process's connection pools, one for the configuration and one for the request log.
`reconnect_timeout` is short, so that a failing pool reports its error soon. The next caller then starts a new attempt
instead of waiting for a growing backoff.
"""
FORM = "postgres://user:password@host:5432/name"
"""Format of `DATABASE_URL`; several hosts are written as `host1:5432,host2:5432`."""


def databases(url: str, data_dir: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of both databases; without a URL these are SQLite files in `data_dir`.

    Raise `SystemExit` with one line if the URL is invalid or the driver is missing.
    """
    if url.partition("://")[0] in SCHEMES:
        return postgresql_databases(url)
    database, logs = database_files(url, data_dir)
    return {
        "default": _sqlite_database(database, "FULL", checkpoint_pages=1000),
        # Growing indexes change the same pages repeatedly. With infrequent checkpoints, each page is written to the
        # database file only once.
        "logs": _sqlite_database(logs, "NORMAL", checkpoint_pages=8000),
    }


def _sqlite_database(path: Path, synchronous: str, checkpoint_pages: int) -> dict[str, Any]:
    pragmas = (
        "journal_mode=WAL",
        f"synchronous={synchronous}",
        "journal_size_limit=67108864",
        # When the write-ahead log has this many pages, a checkpoint writes them to the database file.
        f"wal_autocheckpoint={checkpoint_pages}",
        "cache_size=-8000",
    )
    return {
        "ENGINE": "routing_admin.platform.databases.sqlite",
        "NAME": path,
        "OPTIONS": {
            "timeout": 5,
            # With immediate transactions, concurrent writers wait for each other instead of failing.
            "transaction_mode": "IMMEDIATE",
            "init_command": ";".join(f"PRAGMA {pragma}" for pragma in pragmas),
        },
        "TEST": {"NAME": str(path.with_name(f"test-{path.name}"))},
    }


def postgresql_databases(url: str) -> dict[str, dict[str, Any]]:
    """Return both databases as aliases of one PostgreSQL database, each with its own connection pool."""
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise SystemExit(
            "DATABASE_URL names PostgreSQL, whose driver is not installed. "
            "Run: python -m pip install 'psycopg[binary,pool]' (make run installs it)."
        )
    database = _parse_settings(url)
    return {alias: {**database, "OPTIONS": {**database["OPTIONS"], "pool": POOL}} for alias in ("default", "logs")}


def _parse_settings(url: str) -> dict[str, Any]:
    try:
        # `urlsplit` accepts only one host, and brackets of an IPv6 address only at the host's start.
        before, netlocs, after = _split_netlocs(url)
        parts = urlsplit(before + after)
        hosts, ports = _split_hosts(netlocs.split(","))
    except ValueError:
        raise _refusal("its host or port cannot be read; a password is percent-encoded (@ is %40, / is %2F)") from None
    options = _parse_options(parts)
    name = unquote(parts.path.removeprefix("/"))
    if (not name and "service" not in options) or "/" in name:
        raise _refusal("it names no database")
    host = hosts or options.pop("host", "")
    if "," in host:
        # Several hosts are a primary and its replicas, so connect to the one that accepts writes.
        options.setdefault("target_session_attrs", "read-write")
    return {
        "ENGINE": ENGINE,
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": ports or options.pop("port", ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**NAMED, **options},
    }


def _split_netlocs(url: str) -> tuple[str, str, str]:
    scheme, mark, rest = url.partition("://")
    length = next((at for at, character in enumerate(rest) if character in "/?#"), len(rest))
    user, at_sign, netlocs = rest[:length].rpartition("@")
    return f"{scheme}{mark}{user}{at_sign}", netlocs, rest[length:]


def _split_hosts(netlocs: Sequence[str]) -> tuple[str, str]:
    found = [urlsplit(f"//{netloc}") for netloc in netlocs]
    hosts = [unquote(part.hostname or "") for part in found]
    if len(found) == 1:
        return hosts[0], str(found[0].port or "")
    if not all(hosts):
        raise ValueError("a host is empty")
    ports = [str(part.port or 5432) for part in found]
    return ",".join(hosts), ",".join(ports)


def _parse_options(parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - PARAMETERS)
    if unknown:
        raise _refusal(f"{', '.join(unknown)} is no parameter of a connection (sslmode, sslrootcert, … are)")
    return options


def _refusal(reason: str) -> SystemExit:
    return SystemExit(f"DATABASE_URL is no address of a PostgreSQL database: {reason}. Write it as {FORM}.")
