"""The installation says how much text of a file a model gets; until it does, half of the window that is left."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('routing_admin', '0043_rollup_latencies')]

    operations = [
        migrations.AddField(
            model_name='installation',
            name='content_text',
            field=models.CharField(blank=True, default='', max_length=20, verbose_name='text of a file'),
        ),
    ]
