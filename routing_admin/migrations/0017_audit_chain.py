"""The lines of the audit log become a chain: those that are there are numbered in order, and get their hashes."""

from datetime import UTC

import django.utils.timezone
from django.db import migrations, models

from routing_admin.core.audit import START, AuditEntry, digest_entry

NAMES = ("actor_kind", "actor", "address", "request_id", "action", "object_kind", "object_name", "details", "revision")


def chain(apps, schema_editor):
    """Numbers from 1, in the order in which the lines were written."""
    rows = apps.get_model("routing_admin", "AuditEvent").objects.using(schema_editor.connection.alias)
    if schema_editor.connection.alias != "default":
        return
    number, previous, batch = 0, START, []
    for row in rows.order_by("id").iterator(chunk_size=1000):
        number += 1
        at = row.created_at.astimezone(UTC).isoformat(timespec="microseconds")
        entry = AuditEntry(number=number, at=at, previous=previous, **{name: getattr(row, name) for name in NAMES})
        row.number, row.previous = number, previous
        row.sha256 = previous = digest_entry(entry)
        batch.append(row)
        if len(batch) == 1000:
            rows.bulk_update(batch, ["number", "previous", "sha256"])
            batch = []
    rows.bulk_update(batch, ["number", "previous", "sha256"])


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0016_catalogue_editions'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='auditevent',
            options={'ordering': ['-number']},
        ),
        migrations.AddField(
            model_name='auditevent',
            name='number',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='auditevent',
            name='previous',
            field=models.CharField(default='', max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='auditevent',
            name='sha256',
            field=models.CharField(default='', max_length=64),
            preserve_default=False,
        ),
        migrations.RunPython(chain, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='auditevent',
            name='number',
            field=models.BigIntegerField(unique=True),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='created_at',
            field=models.DateTimeField(db_index=True, default=django.utils.timezone.now),
        ),
    ]
