from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0038_route_allow_n'),
    ]

    operations = [
        migrations.CreateModel(
            name='KeptAnswer',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('owner', models.CharField(max_length=64)),
                ('size', models.PositiveIntegerField()),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('ciphertext', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'expires_at', 'size'], name='kept_by_owner')],
            },
        ),
    ]
