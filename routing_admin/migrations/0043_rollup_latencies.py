"""Roll-ups get the histograms of latencies. Those that exist have none, so they are deleted and built again."""

from django.db import migrations, models


def forget_rollups(apps, schema_editor):
    apps.get_model("routing_admin", "UsageRollup").objects.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):
    dependencies = [('routing_admin', '0042_requests_with_files')]

    operations = [
        migrations.AddField('usagerollup', 'latencies', models.JSONField(null=True)),
        migrations.RunPython(forget_rollups, migrations.RunPython.noop, hints={"model_name": "usagerollup"}),
    ]
