from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("capabilities", "0013_variable_origins"),
    ]

    operations = [
        migrations.AddField(
            model_name="provider",
            name="vendor_tools",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
