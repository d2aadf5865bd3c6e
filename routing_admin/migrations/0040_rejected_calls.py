"""Rejected calls get their model's new name in a new table: their rows are kept for minutes, so none is carried over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('routing_admin', '0039_kept_answers')]

    operations = [
        migrations.DeleteModel('MissedCall'),
        migrations.CreateModel(
            name='RejectedCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True)),
                ('code', models.CharField(max_length=40)),
                ('path', models.CharField(max_length=200)),
                ('key', models.CharField(blank=True, max_length=8)),
                ('shape', models.CharField(max_length=10)),
            ],
            options={'ordering': ['-id']},
        ),
    ]
