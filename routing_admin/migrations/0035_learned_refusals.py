from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0034_route_directive'),
    ]

    operations = [
        migrations.CreateModel(
            name='LearnedRefusal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=120)),
                ('model', models.CharField(max_length=200)),
                ('name', models.CharField(max_length=200)),
                ('sent_as', models.CharField(blank=True, max_length=200)),
                ('address', models.CharField(max_length=64)),
                ('learned_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(
                        fields=('provider', 'model', 'name'), name='one_refusal_per_parameter'
                    )
                ],
            },
        ),
    ]
