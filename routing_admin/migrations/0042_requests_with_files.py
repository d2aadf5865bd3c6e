"""Requests with files get an index, so that `files:described` need not read a million requests without any."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('routing_admin', '0041_alert_handling')]

    operations = [
        migrations.AddIndex(
            model_name='requestlog',
            index=models.Index(
                condition=models.Q(('adaptation', ''), _negated=True),
                fields=['-started_at', '-id', 'adaptation'],
                name='request_files',
            ),
        ),
    ]
