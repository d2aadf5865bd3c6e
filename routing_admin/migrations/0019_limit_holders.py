"""What is counted belongs to a holder, of which an agent is one; what was counted so far stays counted."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr

AGENT = "agent:"


def name_holders(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("routing_admin", "LimitWindow").objects.using(schema_editor.connection.alias)
    rows.update(holder=Concat(Value(AGENT), F("holder")))


def name_agents(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("routing_admin", "LimitWindow").objects.using(schema_editor.connection.alias)
    rows.exclude(holder__startswith=AGENT).delete()
    rows.update(holder=Substr("holder", len(AGENT) + 1))


class Migration(migrations.Migration):
    dependencies = [("routing_admin", "0018_attempt_costs")]

    operations = [
        migrations.RemoveConstraint("limitwindow", "one_row_per_limit_window"),
        migrations.RenameField("limitwindow", "agent", "holder"),
        migrations.AlterField("limitwindow", "holder", models.CharField(max_length=350)),
        migrations.RunPython(name_holders, name_agents, hints={"model_name": "limitwindow"}),
        migrations.AddConstraint(
            "limitwindow",
            models.UniqueConstraint(fields=["holder", "meter", "window"], name="one_row_per_limit_window"),
        ),
    ]
