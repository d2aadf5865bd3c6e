"""What a provider says beside an answer gets its place in the request log: the sorts of tokens, and the rest."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0006_lean_log'),
    ]

    operations = [
        migrations.AddField(
            model_name='requestlog',
            name='answer',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='requestlog',
            name='token_details',
            field=models.JSONField(null=True),
        ),
    ]
