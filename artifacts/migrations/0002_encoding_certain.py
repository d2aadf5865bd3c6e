"""Whether an encoding is certain is kept; of earlier files only the Unicode ones are, the rest were guesses."""

from django.db import migrations, models


def doubt_old_encodings(apps, schema_editor):
    texts = apps.get_model('artifacts', 'Artifact').objects.exclude(encoding='')
    texts.exclude(encoding__startswith='utf-').update(encoding_certain=False)


class Migration(migrations.Migration):

    dependencies = [
        ('artifacts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='artifact',
            name='encoding_certain',
            field=models.BooleanField(default=True),
        ),
        migrations.RunPython(doubt_old_encodings, migrations.RunPython.noop),
    ]
