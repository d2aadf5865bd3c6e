"""The tables of a new database in one step.

A database that has had some of the old migrations goes on through them, as a backup of one does.
"""

import artifacts.models
import django.db.models.functions.text
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ('artifacts', '0001_initial'),
        ('artifacts', '0002_encoding_certain'),
        ('artifacts', '0003_correction'),
        ('artifacts', '0004_upload_links'),
        ('artifacts', '0005_artifact_name_index'),
    ]
    operations = [
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.CharField(default=artifacts.models.new_artifact_id, editable=False, max_length=64, primary_key=True, serialize=False)),
                ('filename', models.CharField(blank=True, max_length=255, verbose_name='filename')),
                ('sha256', models.CharField(db_index=True, max_length=64)),
                ('size', models.PositiveBigIntegerField()),
                ('kind', models.CharField(choices=[('text', 'text'), ('image', 'image'), ('audio', 'audio'), ('video', 'video'), ('document', 'document'), ('other', 'other')], max_length=10)),
                ('mime_type', models.CharField(max_length=150)),
                ('declared_mime_type', models.CharField(blank=True, max_length=255)),
                ('detected_mime_type', models.CharField(blank=True, max_length=150)),
                ('is_binary', models.BooleanField()),
                ('encoding', models.CharField(blank=True, max_length=40)),
                ('evidence', models.JSONField(default=list)),
                ('mismatch', models.BooleanField(default=False)),
                ('type', models.CharField(blank=True, max_length=100)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('width', models.PositiveIntegerField(blank=True, null=True)),
                ('height', models.PositiveIntegerField(blank=True, null=True)),
                ('pages', models.PositiveIntegerField(blank=True, null=True)),
                ('seconds', models.FloatField(blank=True, null=True)),
                ('owner', models.CharField(blank=True, db_index=True, max_length=120)),
                ('uploaded_by', models.CharField(blank=True, max_length=150)),
                ('visibility', models.CharField(choices=[('shared', 'every agent with the reference'), ('private', 'only the agent that stored it')], default='shared', max_length=7)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('encoding_certain', models.BooleanField(default=True)),
                ('correction', models.JSONField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [
                    models.Index(fields=['owner', '-created_at', '-id'], name='artifact_owner_newest'),
                    models.Index(django.db.models.functions.text.Lower('filename'), condition=models.Q(('deleted_at__isnull', True)), name='artifact_name'),
                ],
                'constraints': [models.CheckConstraint(condition=models.Q(('sha256', ''), _negated=True), name='artifact_has_bytes')],
            },
        ),
        migrations.CreateModel(
            name='UploadLink',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('agent', models.CharField(max_length=120)),
                ('key', models.CharField(max_length=16)),
                ('filename', models.CharField(blank=True, max_length=255)),
                ('mime_type', models.CharField(blank=True, max_length=255)),
                ('artifact_id', models.CharField(max_length=64)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('used_at', models.DateTimeField(null=True)),
            ],
        ),
    ]
