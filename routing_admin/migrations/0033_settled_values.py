"""What SQLite kept and PostgreSQL could not (NUL, −0.0, exponents in JSON) is written as both give it back.

A revision whose digest was right has the digest of its settled value.
"""

import hashlib
import json

from django.db import migrations
from django.db.models import CharField, JSONField, TextField

from capabilities.core.storable import make_json_storable, storable_text

APPS = ("artifacts", "capabilities", "routing_admin")
APPEND_ONLY = "auditevent"
ODD = ("\\u0000", "\\ud", "\\uD", "-0.0", "e+", "NaN", "Infinity")


def settle(apps, schema_editor):
    """Rewrites the odd values of the main database."""
    connection = schema_editor.connection
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        for model in apps.get_models():
            options = model._meta
            if options.app_label not in APPS or options.model_name == APPEND_ONLY or options.db_table not in tables:
                continue
            for field in options.local_concrete_fields:
                if isinstance(field, JSONField):
                    settle_column(
                        cursor,
                        options,
                        field.column,
                        " OR ".join(f"instr({{0}}, '{odd}') > 0" for odd in ODD),
                        make_json_storable,
                    )
                elif isinstance(field, (CharField, TextField)):
                    settle_column(cursor, options, field.column, "instr(CAST({0} AS BLOB), x'00') > 0", storable_text)


def settle_column(cursor, options, column, condition, change):
    """Rewrites the values of a column that are not settled."""
    table, key = options.db_table, options.pk.column
    name = f'"{column}"'
    cursor.execute(f'SELECT "{key}", {name} FROM "{table}" WHERE {condition.format(name)}')
    for number, text in cursor.fetchall():
        settled = change(text)
        if settled == text:
            continue
        if (options.model_name, column) == ("revision", "snapshot"):
            cursor.execute(
                f'UPDATE "{table}" SET sha256 = %s WHERE "{key}" = %s AND sha256 = %s',
                [digest(settled), number, digest(text)],
            )
        cursor.execute(f'UPDATE "{table}" SET {name} = %s WHERE "{key}" = %s', [settled, number])


def digest(text):
    """SHA-256 of a JSON text's value in its canonical form."""
    words = json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


class Migration(migrations.Migration):
    dependencies = [
        ("routing_admin", "0032_request_endings"),
        ("capabilities", "0012_agent_links"),
        ("artifacts", "0005_artifact_name_index"),
    ]

    operations = [migrations.RunPython(settle, migrations.RunPython.noop)]
