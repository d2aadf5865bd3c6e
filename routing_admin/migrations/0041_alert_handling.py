"""Alerts can be acknowledged and muted, and the address of their webhook be stored.

It names the migration that the squashed one replaces, so that a database can still be migrated back before it.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('capabilities', '0001_squashed_0014'),
        ('routing_admin', '0040_rejected_calls'),
    ]

    operations = [
        migrations.AddField(
            model_name='alert',
            name='acknowledged_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='alert',
            name='acknowledged_by',
            field=models.CharField(blank=True, db_default='', default='', max_length=150),
        ),
        migrations.AddField(
            model_name='alert',
            name='muted_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='installation',
            name='alert_webhook',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='capabilities.storedkey'),
        ),
    ]
