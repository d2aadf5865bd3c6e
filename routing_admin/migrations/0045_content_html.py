"""The installation says whether models get the words of web pages or their source; until it does, the words."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('routing_admin', '0044_content_text')]

    operations = [
        migrations.AddField(
            model_name='installation',
            name='content_html',
            field=models.CharField(blank=True, default='', max_length=20, verbose_name='web pages'),
        ),
    ]
