from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0035_learned_refusals'),
    ]

    operations = [
        migrations.AddField(
            model_name='taskroute',
            name='keep_alive_seconds',
            field=models.FloatField(blank=True, null=True),
        ),
    ]
