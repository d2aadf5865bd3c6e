"""The installation says what is tried for files that a model cannot take; until it does, text and conversion are."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0009_kept_prefix'),
    ]

    operations = [
        migrations.AddField(
            model_name='installation',
            name='content_policy',
            field=models.CharField(blank=True, default='', max_length=40, verbose_name='content policy'),
        ),
    ]
