"""Print an installation's contents as JSON for comparison: `python tests/databases/moved_facts.py [make|add]`.

`make` first creates an installation with data of all kinds. `add` first stores another artifact.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["DJANGO_SETTINGS_MODULE"] = "routing_admin.settings"


def make() -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.utils import timezone

    from artifacts.library import delete_artifacts, store_bytes
    from capabilities.actors import SYSTEM, AuditedAction
    from capabilities.models import Provider
    from capabilities.secrets import store_key
    from routing_admin.configuration.revisions import ledger
    from routing_admin.models import AttemptLog, RequestLog, SignInAttempt

    call_command("bootstrap", stdout=sys.stderr)
    with ledger.change(SYSTEM, AuditedAction("test")):
        provider = Provider.objects.get(name="openai")
        provider.key_source, provider.stored_key = "stored", store_key("sk-very-secret-1234", provider.endpoint)
        provider.save()
    User.objects.create_user("vera", password="correct horse battery staple")
    deleted = store_bytes(SYSTEM, b"x" * 6_000_000, filename="中文 \U0001f600.bin", metadata={"a": [1.0, None, "é"]})
    delete_artifacts(SYSTEM, [deleted.pk])
    now = timezone.now()
    SignInAttempt.objects.bulk_create(SignInAttempt(at=now, name=f"{number:064}") for number in range(1200))
    # The text contains characters that COPY escapes or a database might change: a line separator, an emoji, NUL.
    for number, odd in enumerate(("\\N", "tab\tline\n\r\\t", "\b\f\v'\"", "中\u2028\U0001f600", "a\0b")):
        request = RequestLog(
            id=f"{odd} {number}", started_at=now, asked_model=odd, outcome="ok", chain=[{"long": 1, "b": odd}]
        )
        request.duration_ms, request.first_content_ms, request.answer = (
            10.0 ** (8 * number),
            1e-7,
            {"number": 1e-7, "a": odd},
        )
        request.save()
        AttemptLog.objects.create(request=request, position=number, provider=odd, at=now, tries=[[0.1, -0.0, 1e16]])


def add() -> None:
    from artifacts.library import store_text
    from capabilities.actors import SYSTEM

    store_text(SYSTEM, "stored after the move", filename="after.txt")


def facts() -> dict[str, Any]:
    """Return row digests, exports, decrypted keys and whether the stored bytes match their hashes."""
    from artifacts.models import Artifact
    from artifacts.storage.content import byte_store
    from capabilities.models import Provider
    from capabilities.secrets import open_key
    from routing_admin.configuration import exports
    from routing_admin.console.backups.data_transfer.streams import digest_table
    from routing_admin.console.backups.data_transfer.tables import list_tables, table_alias
    from routing_admin.core.files.exporting import Mode
    from routing_admin.core.files.importing import FileFormat

    digests = {model._meta.db_table: digest_table(model, table_alias(model)) for model in list_tables()}
    keyed = Provider.objects.exclude(stored_key=None).select_related("stored_key")
    return {
        "rows": {name: [digest.lines, digest.hash.hexdigest()] for name, digest in digests.items()},
        "exports": {file_format.value: exports.export(file_format, Mode.FULL).text for file_format in FileFormat},
        "keys": {provider.name: open_key(provider.stored_key, provider.endpoint) for provider in keyed},
        "bytes": {
            row.pk: hashlib.sha256(b"".join(byte_store().open_blocks(row.sha256))).hexdigest() == row.sha256
            for row in Artifact.objects.all()
        },
    }


if __name__ == "__main__":
    import django

    django.setup()
    for step in sys.argv[1:]:
        {"make": make, "add": add}[step]()
    print(json.dumps(facts()))
