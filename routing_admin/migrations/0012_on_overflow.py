"""A route can pass a model by that a request is too long for."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0011_leaner_log_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='taskroute',
            name='on_overflow',
            field=models.CharField(blank=True, default='', max_length=20),
        ),
    ]
