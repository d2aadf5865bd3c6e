"""The request log without two indexes that begin as others do: every request paid for them, and no search needs them.

The indexes are dropped by their names: altering the fields would have SQLite copy both tables, a million rows and more.
"""

import django.db.models.deletion
from django.db import migrations, models

STARTED_AT = "routing_admin_requestlog_started_at_a4145f47"
REQUEST = "routing_admin_attemptlog_request_id_999c780c"


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0005_sentences_as_data'),
    ]

    operations = [
        migrations.RunSQL(
            [
                f'DROP INDEX IF EXISTS "{STARTED_AT}"',
                f'DROP INDEX IF EXISTS "{REQUEST}"',
                f'DROP INDEX IF EXISTS "{REQUEST}_like"',  # PostgreSQL has it beside the index of a text column
            ],
            [
                f'CREATE INDEX "{STARTED_AT}" ON "routing_admin_requestlog" ("started_at")',
                f'CREATE INDEX "{REQUEST}" ON "routing_admin_attemptlog" ("request_id")',
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='attemptlog',
                    name='request',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='routing_admin.requestlog'),
                ),
                migrations.AlterField(
                    model_name='requestlog',
                    name='started_at',
                    field=models.DateTimeField(),
                ),
            ],
            hints={'model_name': 'requestlog'},
        ),
    ]
