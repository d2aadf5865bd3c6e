"""A conversation is known again by digests, so that a request's page can say whether its prefix was kept."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('routing_admin', '0008_on_drop'),
    ]

    operations = [
        migrations.AddField(
            model_name='requestlog',
            name='conversation',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='requestlog',
            name='prefix',
            field=models.JSONField(null=True),
        ),
        migrations.AddIndex(
            model_name='requestlog',
            index=models.Index(
                condition=models.Q(('conversation__isnull', False)),
                fields=['conversation'],
                name='request_conversation',
            ),
        ),
    ]
