"""The read-only checks of the command `doctor`.

Each check returns one sentence per problem. It says what is wrong and where, and contains no secrets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from artifacts.core.errors import StoreUnavailableError
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.core.message import UnreadableError
from capabilities.models import Provider, ProviderKey
from capabilities.secrets import KeyUnreadableError, open_key
from routing_admin.configuration import revisions, rows
from routing_admin.configuration.audit import verify_audit
from routing_admin.configuration.history import newest_configuration
from routing_admin.core.configuration.checks import check
from routing_admin.core.configuration.diff import diff
from routing_admin.models import Revision
from routing_admin.platform.databases.explaining import check_writable, list_missing_rights
from routing_admin.platform.databases.unavailable import DatabaseFault, classify_error


def databases() -> list[str]:
    """Return problems with the database files, and permissions that the database user lacks.

    Raise `DatabaseError` if the database refuses writes.
    """
    found = []
    try:
        check_writable()
    except DatabaseError as error:
        # A separate check, `migrations`, reports missing tables.
        if classify_error(error) is not DatabaseFault.OUTDATED:
            raise
    for alias in connections:
        with connections[alias].cursor() as cursor:
            for pragma in ("quick_check", "foreign_key_check") if connections[alias].vendor == "sqlite" else ():
                cursor.execute(f"PRAGMA {pragma}")
                reports = [row for row in cursor.fetchall() if row != ("ok",)]
                found += [f"{alias}: {pragma} says {' '.join(map(str, row))}" for row in reports[:10]]
    found += [f"its user lacks the right {right}; make it the owner of the tables" for right in list_missing_rights()]
    return found


def migrations() -> list[str]:
    found = []
    for alias in connections:
        executor = MigrationExecutor(connections[alias])
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        found += [
            f"{alias}: migration {migration.app_label} {migration.name} has not been applied" for migration, _ in plan
        ]
    return [*found, *(["Run: routing-admin bootstrap"] if found else [])]


def configuration() -> list[str]:
    """Return problems with the configuration's rows, which must be valid and equal to the newest revision."""
    now = rows.read()
    found = [f"{problem.field}: {problem.message}" for problem in check(now) if problem.severity == "error"]
    changes = diff(newest_configuration(), now)
    if changes:
        found.append(f"The rows differ from the newest revision in {len(changes)} places: something wrote past it.")
    return found


def history() -> list[str]:
    return [
        f"Revision {revision.number} is not what was written: its digest does not fit."
        for revision in Revision.objects.iterator(chunk_size=20)
        if revisions.digest(revision.snapshot) != revision.sha256
    ]


def audit() -> list[str]:
    return list(verify_audit().problems)


def keys() -> list[str]:
    providers = Provider.objects.exclude(stored_key=None).select_related("stored_key")
    further_keys = ProviderKey.objects.exclude(stored_key=None).select_related("stored_key", "provider")
    stored_keys = [(row, row.stored_key, row.name) for row in providers]
    stored_keys += [(key.provider, key.stored_key, f"{key.provider.name}, key {key.name}") for key in further_keys]
    found = []
    for provider, stored, name in stored_keys:
        try:
            if stored is not None:
                open_key(stored, provider.endpoint)
        except KeyUnreadableError as problem:
            found.append(f"{name}: {problem}")
    return found


def artifact_store() -> list[str]:
    try:
        byte_store().check()
    except StoreUnavailableError as problem:
        return [problem.details]
    return []


def artifacts() -> list[str]:
    """Return problems with artifacts that are not deleted, after reading all of their bytes."""
    store, found = byte_store(), artifact_store()
    if found:
        return ["cannot be checked: the store is not responding"]
    for sha256 in Artifact.objects.living().order_by().values_list("sha256", flat=True).distinct():
        try:
            store.verify(sha256)
        except UnreadableError as problem:
            names = list(Artifact.objects.living().filter(sha256=sha256).values_list("id", flat=True)[:3])
            found.append(f"artifact:{', artifact:'.join(names)}: {problem}")
    return found


def administrators() -> list[str]:
    people = User.objects.filter(is_staff=True, is_active=True)
    if any(user.has_usable_password() for user in people):
        return []
    return ["No administrator can sign in. Run: routing-admin set-password NAME"]


def file_permissions() -> list[str]:
    """Return a problem for each path in the data directory that other users of the machine can read."""
    return [
        f"{path} can be read by others. Run: chmod {700 if path.is_dir() else 600} {path}"
        for path in private_paths()
        if readable_by_others(path)
    ]


def private_paths() -> list[Path]:
    folder = Path(settings.DATA_DIR)
    return [folder, folder / "secret_key", folder / "keys", *sorted(folder.glob("*.sqlite3*"))]


def restrict_permissions() -> list[str]:
    """Remove other users' access to this user's files in the data directory, and return the changed paths.

    An older version of the program or a file copy may have left the files readable to other users.
    """
    found = [path for path in private_paths() if readable_by_others(path) and path.stat().st_uid == os.geteuid()]
    for path in found:
        path.chmod(0o700 if path.is_dir() else 0o600)
    return [str(path) for path in found]


def readable_by_others(path: Path) -> bool:
    return path.exists() and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


CHECKS: Mapping[str, Callable[[], list[str]]] = {
    "databases": databases,
    "migrations": migrations,
    "configuration": configuration,
    "history": history,
    "audit log": audit,
    "provider keys": keys,
    "artifact store": artifact_store,
    "artifacts": artifacts,
    "administrators": administrators,
    "data directory": file_permissions,
}
"""The checks of `doctor` by name, in order."""
