"""Create the tables of a new database in one step.

A database (or a restored backup) in which only some of the replaced migrations have run continues with the others.
"""

import capabilities.core.vocabulary
import django.db.models.deletion
from django.db import migrations, models

ID = ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID'))


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ('capabilities', '0001_initial'),
        ('capabilities', '0002_provider_tests'),
        ('capabilities', '0003_probe_transcripts'),
        ('capabilities', '0004_agent_limits'),
        ('capabilities', '0005_contested_cells'),
        ('capabilities', '0006_service_price'),
        ('capabilities', '0007_drift'),
        ('capabilities', '0008_provider_keys'),
        ('capabilities', '0009_catalogue_editions'),
        ('capabilities', '0010_signed_with'),
        ('capabilities', '0011_key_terms'),
        ('capabilities', '0012_agent_links'),
        ('capabilities', '0013_variable_origins'),
        ('capabilities', '0014_vendor_tools'),
    ]
    operations = [
        migrations.CreateModel(
            name='StoredKey',
            fields=[
                ID,
                ('fingerprint', models.CharField(max_length=64, unique=True)),
                ('origin', models.CharField(max_length=300)),
                ('ciphertext', models.TextField()),
                ('last_four', models.CharField(blank=True, max_length=4)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Provider',
            fields=[
                ID,
                ('name', models.CharField(max_length=120, unique=True, verbose_name='name')),
                ('display_name', models.CharField(blank=True, max_length=200, verbose_name='display name')),
                ('protocol', models.CharField(default='openai', max_length=30, verbose_name='protocol')),
                ('endpoint', models.CharField(max_length=500, verbose_name='base URL')),
                ('default_model', models.CharField(max_length=200, verbose_name='default model')),
                ('key_source', models.CharField(choices=[('none', 'needs no key'), ('env', 'from the environment'), ('stored', 'stored, encrypted')], default='env', max_length=10)),
                ('key_variable', models.CharField(blank=True, max_length=200)),
                ('env_name', models.CharField(blank=True, max_length=120)),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('quirks', models.JSONField(blank=True, default=dict)),
                ('timeouts', models.JSONField(blank=True, default=dict)),
                ('proxy', models.CharField(default='default', max_length=500)),
                ('in_routing_file', models.BooleanField(default=True)),
                ('extra', models.JSONField(blank=True, default=dict)),
                ('position', models.PositiveIntegerField(default=0)),
                ('version', models.PositiveIntegerField(default=1)),
                ('stored_key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='providers', to='capabilities.storedkey')),
                ('key_enabled', models.BooleanField(default=True)),
                ('key_name', models.CharField(blank=True, max_length=60)),
                ('vendor_tools', models.JSONField(blank=True, null=True)),
            ],
            options={
                'ordering': ['position', 'id'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='provider_has_a_name'),
                    models.CheckConstraint(condition=models.Q(models.Q(('key_source', 'stored'), ('stored_key__isnull', False)), models.Q(('key_source', 'stored'), _negated=True), _connector='OR'), name='provider_stored_key_is_there'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Service',
            fields=[
                ID,
                ('service_id', models.CharField(max_length=200, unique=True, verbose_name='id')),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('model', models.CharField(max_length=200, verbose_name='model name')),
                ('base_url', models.CharField(blank=True, max_length=500)),
                ('capability_tags', models.JSONField(blank=True, default=list)),
                ('declares_capabilities', models.BooleanField(default=True)),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('limits', models.JSONField(blank=True, default=dict)),
                ('content', models.JSONField(blank=True, default=dict, verbose_name='content policy')),
                ('timeouts', models.JSONField(blank=True, default=dict)),
                ('extra_body', models.JSONField(blank=True, default=dict)),
                ('routed', models.BooleanField(default=True)),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('extra', models.JSONField(blank=True, default=dict)),
                ('position', models.PositiveIntegerField(default=0)),
                ('version', models.PositiveIntegerField(default=1)),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='services', to='capabilities.provider', verbose_name='provider')),
                ('price', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'ordering': ['position', 'id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('service_id', ''), _negated=True), name='service_has_an_id')],
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ID,
                ('agent_id', models.CharField(max_length=120, unique=True, verbose_name='id')),
                ('name', models.CharField(blank=True, max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('task_type', models.CharField(blank=True, max_length=200, verbose_name='task type')),
                ('origin', models.CharField(choices=[('administrator', 'created in the browser'), ('runtime', 'created at run time')], default='administrator', max_length=13)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='made', to='capabilities.agent')),
                ('service', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='capabilities.service')),
                ('limits', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'ordering': ['agent_id'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('agent_id', ''), _negated=True), name='agent_has_an_id'),
                    models.CheckConstraint(condition=models.Q(('service__isnull', True), ('task_type', ''), _connector='OR'), name='agent_uses_service_or_route'),
                ],
            },
        ),
        migrations.CreateModel(
            name='AgentKey',
            fields=[
                ID,
                ('public_id', models.CharField(max_length=16, unique=True)),
                ('digest', models.CharField(max_length=64)),
                ('label', models.CharField(blank=True, max_length=100)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='capabilities.agent')),
                ('signed_with', models.CharField(blank=True, default='', max_length=16)),
                ('issued_terms', models.JSONField(blank=True, default=dict)),
                ('terms', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ServiceCapability',
            fields=[
                ID,
                ('side', models.CharField(choices=[('input', 'input'), ('output', 'output')], max_length=6)),
                ('name', models.CharField(max_length=100)),
                ('supported', models.BooleanField(default=True)),
                ('source', models.CharField(choices=[('declared', 'declared'), ('probed', 'probed'), ('catalogue', 'catalogue'), ('contested', 'contested'), ('unknown', 'unknown')], default=capabilities.core.vocabulary.Source['DECLARED'], max_length=10)),
                ('position', models.PositiveIntegerField(default=0)),
                ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='capabilities', to='capabilities.service')),
            ],
            options={
                'ordering': ['side', 'position', 'id'],
                'constraints': [
                    models.UniqueConstraint(fields=('service', 'side', 'name'), name='one_cell_per_capability'),
                    models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='capability_has_a_name'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ProviderTest',
            fields=[
                ('name', models.CharField(max_length=120, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('ms', models.FloatField()),
                ('fault', models.CharField(blank=True, max_length=40)),
            ],
        ),
        migrations.CreateModel(
            name='ProbeTranscript',
            fields=[
                ID,
                ('provider', models.CharField(max_length=120)),
                ('model', models.CharField(max_length=200)),
                ('capability', models.CharField(max_length=100)),
                ('decided', models.BooleanField()),
                ('outcome', models.CharField(max_length=10)),
                ('reason', models.CharField(max_length=20)),
                ('at', models.DateTimeField()),
                ('actor', models.CharField(max_length=150)),
                ('question', models.TextField()),
                ('mime_type', models.CharField(max_length=100)),
                ('exchanges', models.JSONField(default=list)),
            ],
            options={
                'ordering': ['capability', '-at'],
                'constraints': [models.UniqueConstraint(fields=('provider', 'model', 'capability', 'decided'), name='one_last_probe')],
            },
        ),
        migrations.CreateModel(
            name='NightlyProbe',
            fields=[
                ('service_id', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('last_night', models.DateField()),
            ],
        ),
        migrations.CreateModel(
            name='Drift',
            fields=[
                ID,
                ('provider', models.CharField(max_length=120)),
                ('model', models.CharField(max_length=200)),
                ('capability', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('refused', 'refused'), ('denied', 'denied'), ('stopped', 'stopped'), ('started', 'started')], max_length=10)),
                ('at', models.DateTimeField()),
                ('request', models.CharField(blank=True, max_length=64)),
                ('status', models.PositiveIntegerField(null=True)),
                ('revision', models.BigIntegerField(null=True)),
                ('dismissed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-at'],
                'constraints': [models.UniqueConstraint(fields=('provider', 'model', 'capability'), name='one_drift_per_cell')],
            },
        ),
        migrations.CreateModel(
            name='KeyTest',
            fields=[
                ID,
                ('provider', models.CharField(max_length=120)),
                ('key', models.CharField(max_length=60)),
                ('at', models.DateTimeField()),
                ('ms', models.FloatField()),
                ('fault', models.CharField(blank=True, max_length=40)),
            ],
            options={'constraints': [models.UniqueConstraint(fields=('provider', 'key'), name='one_test_per_key')]},
        ),
        migrations.CreateModel(
            name='ProviderKey',
            fields=[
                ID,
                ('name', models.CharField(max_length=60, verbose_name='name')),
                ('key_source', models.CharField(choices=[('none', 'needs no key'), ('env', 'from the environment'), ('stored', 'stored, encrypted')], max_length=10)),
                ('key_variable', models.CharField(blank=True, max_length=200)),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('position', models.PositiveIntegerField(default=0)),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='more_keys', to='capabilities.provider')),
                ('stored_key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='provider_keys', to='capabilities.storedkey')),
            ],
            options={
                'ordering': ['provider', 'position', 'id'],
                'constraints': [
                    models.UniqueConstraint(fields=('provider', 'name'), name='one_provider_key_per_name'),
                    models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='provider_key_has_a_name'),
                    models.CheckConstraint(condition=models.Q(models.Q(('key_source', 'stored'), ('stored_key__isnull', False)), ('key_source', 'env'), _connector='OR'), name='provider_key_is_somewhere'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CatalogueEdition',
            fields=[
                ID,
                ('name', models.CharField(max_length=300, unique=True)),
                ('content', models.BinaryField()),
                ('made_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={'ordering': ['-id']},
        ),
        migrations.CreateModel(
            name='AgentLink',
            fields=[
                ID,
                ('name', models.CharField(max_length=100)),
                ('public_id', models.CharField(max_length=16, unique=True)),
                ('digest', models.CharField(max_length=64)),
                ('signed_with', models.CharField(max_length=16)),
                ('with_bodies', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_seen_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='capabilities.agent')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='VariableOrigin',
            fields=[
                ID,
                ('variable', models.CharField(max_length=200)),
                ('origin', models.CharField(max_length=600)),
            ],
            options={'constraints': [models.UniqueConstraint(fields=('variable', 'origin'), name='one_row_per_variable_and_origin')]},
        ),
    ]
