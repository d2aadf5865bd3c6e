"""A route can say that nothing of a request may be left out."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0007_answer_details'),
    ]

    operations = [
        migrations.AddField(
            model_name='taskroute',
            name='on_drop',
            field=models.CharField(blank=True, default='', max_length=20),
        ),
    ]
