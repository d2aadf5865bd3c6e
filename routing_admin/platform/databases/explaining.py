"""Explain database errors to operators in one line: what failed, where, and what to do.

Explanations never contain a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, NotSupportedError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from capabilities.runtime import owned
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.platform.databases.unavailable import DatabaseFault, classify_error, is_unavailable

BOOTSTRAP = "Run: routing-admin bootstrap"
DRIVER = (
    "DATABASE_URL names PostgreSQL, whose driver cannot be loaded. "
    "Run: python -m pip install 'psycopg[binary,pool]' (make run installs it)."
)
REASONS: tuple[tuple[str, str], ...] = (
    (r"Connection refused|No such file or directory", "Nothing answers at {place}. Start PostgreSQL, {correct}."),
    (
        r"could not translate host name|resolve host|Name or service not known|Temporary failure in name resolution",
        "The host of {place} is not found. Start its machine, {correct}.",
    ),
    (
        r"timeout expired|Connection timed out|timed out",
        "{place} does not answer in time. Look for a firewall, {correct}.",
    ),
    (
        r"password authentication failed|no password supplied",
        "{place} refuses the user {user}: wrong name or password. Correct DATABASE_URL; in it @ is %40, / is %2F.",
    ),
    (
        r'role "[^"]*" does not exist',
        "There is no user {user} at {place}. Make one (createuser --pwprompt {user}), or correct DATABASE_URL.",
    ),
    (
        r'database "[^"]*" does not exist',
        "There is no database {name} at {place}. Make it (createdb --owner {user} {name}), or correct DATABASE_URL.",
    ),
    (
        r"server does not support SSL",
        "{place} speaks no TLS, for which DATABASE_URL asks. Turn it on there (ssl = on), or write ?sslmode=prefer.",
    ),
    (
        r"certificate|SSL error",
        "The TLS of {place} is not trusted: {said}. Name its authority in DATABASE_URL: ?sslrootcert=/path/to/ca.pem.",
    ),
    (
        r"no pg_hba.conf entry|SSL",
        "{place} does not take this connection: {said}. Add ?sslmode=require, or let this machine in (pg_hba.conf).",
    ),
    (
        r"too many clients|connection slots|too many connections",
        "{place} has no connection left. Raise max_connections, or run fewer processes.",
    ),
    (
        r"permission denied for schema",
        "The user {user} may not make tables in {name}. Let it: ALTER DATABASE {name} OWNER TO {user}.",
    ),
)
"""Pairs: a pattern that matches error messages of the server or driver, and the explanation for operators."""
READ_ONLY = (
    "The database at {place} is read-only: {said}. Name the primary server in DATABASE_URL. If this is the primary, "
    "make room on its disk, or turn off its default_transaction_read_only."
)
READ_ONLY_FILE = "The database {name} is read-only: {said}. Let the server's user write the file and its folder."
FORBIDDEN = "The user {user} lacks a right in {name}: {said}. Grant it, or make that user the owner of the tables."
CORRECT = "or correct host and port in DATABASE_URL"


def explain_failure(error: BaseException, alias: str = "default") -> str | None:
    """Return the explanation of a database error, or None if an operator cannot correct its cause."""
    if isinstance(error, ImportError | ImproperlyConfigured):
        return DRIVER if "psycopg" in str(error) or "pq wrapper" in str(error) else None
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    if classify_error(error) is DatabaseFault.OUTDATED:
        return f"The database lacks the tables of this version. {BOOTSTRAP}."
    settings = connections[alias].settings_dict
    if connections[alias].vendor != POSTGRESQL:
        sentence = (
            READ_ONLY_FILE
            if classify_error(error) is DatabaseFault.READ_ONLY
            else "The database {name} does not answer: {said}."
        )
        return sentence.format(name=settings["NAME"], said=_first_line(error)) if is_unavailable(error) else None
    return _explain_postgresql(error, settings)


def _explain_postgresql(error: DatabaseError | InterfaceError, settings: dict[str, Any]) -> str | None:
    facts = {
        "place": _server_address(settings),
        "user": settings["USER"] or "of this process",
        "name": settings["NAME"],
        "said": _first_line(error),
        "correct": CORRECT,
    }
    if isinstance(error, NotSupportedError):
        return (
            f"The server at {facts['place']} is too old: {facts['said']}. Upgrade it, or name another in DATABASE_URL."
        )
    if classify_error(error) is DatabaseFault.READ_ONLY:
        return READ_ONLY.format(**facts)
    for pattern, sentence in REASONS:
        if re.search(pattern, str(error)):
            return sentence.format(**facts)
    if classify_error(error) is DatabaseFault.FORBIDDEN:
        return FORBIDDEN.format(**facts)
    if is_unavailable(error):
        return f"The database at {facts['place']} does not answer: {facts['said']}."
    return None


def _server_address(settings: dict[str, Any]) -> str:
    hosts, ports = settings["HOST"].split(","), str(settings["PORT"] or 5432).split(",")
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    return ", ".join(f"{host or 'the local socket'}:{port}" for host, port in zip(hosts, ports, strict=True))


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


INSERT = "INSERT INTO {table} ({columns}) SELECT {columns} FROM {table} WHERE 1 = 0"
UPDATE = "UPDATE {table} SET {column} = {column} WHERE 1 = 0"
PROBES: Mapping[str, Sequence[tuple[str, str]]] = {
    DEFAULT_DB_ALIAS: (("Installation", INSERT),),
    LOGS: (("RequestLog", INSERT), ("AttemptLog", INSERT), ("UsageSum", INSERT), ("UsageSum", UPDATE)),
}
"""Tables that the server needs in each database, and the statements that test whether it can write to them."""
LOCK_SECONDS = 0.1


def check_writable() -> None:
    """Run an INSERT of zero rows on tables of each database.

    This needs everything that a real insert needs, except disk space. A locked database counts as writable. Raise
    `DatabaseError` or `InterfaceError` for an outage, which `classify_error` can classify.
    """
    for alias, probes in PROBES.items():
        try:
            # Connect outside of the short lock timeout, because a busy pool may need longer.
            connections[alias].ensure_connection()
            with lock_timeout(LOCK_SECONDS), connections[alias].cursor() as cursor:
                for name, statement in probes:
                    cursor.execute(_probe_statement(name, statement, connections[alias]))
        except DatabaseError as error:
            if classify_error(error) is not DatabaseFault.LOCKED:
                raise


def _probe_statement(name: str, statement: str, connection: BaseDatabaseWrapper) -> str:
    meta = apps.get_model("routing_admin", name)._meta
    columns = [connection.ops.quote_name(str(field.column)) for field in meta.concrete_fields]
    return statement.format(table=meta.db_table, columns=", ".join(columns), column=columns[-1])


def list_missing_rights() -> list[str]:
    """Return rights such as `INSERT ON auth_user` that the PostgreSQL user lacks because it does not own the tables."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor != POSTGRESQL:
        return []
    tables = sorted(model._meta.db_table for model in apps.get_models(include_auto_created=True) if model._meta.managed)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT may || ' ON ' || name FROM unnest(%s::text[]) name, unnest(ARRAY['SELECT', 'INSERT']) may"
            " WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(to_regclass(name), may) ORDER BY 1",
            [tables],
        )
        return [missing for (missing,) in cursor.fetchall()]


# The threads of a server borrow connections from a pool, while a management command uses a connection of its own.

_pooled = owned(Event)


def is_pooled() -> bool:
    return _pooled().is_set()


def pool_connections() -> None:
    """From now on, let threads borrow connections from a pool, if the database engine supports pools."""
    _pooled().set()
