from __future__ import annotations

from typing import Any

from django.db import migrations, models


def bind_present_uses(apps: Any, schema_editor: Any) -> None:
    """Bind each variable with a provider key to the origins of its providers, so that they continue to work."""
    from capabilities.core.providers.environment import find_overrides
    from capabilities.secrets import endpoint_origin

    rows = list(apps.get_model("capabilities", "Provider").objects.order_by("position", "id"))
    further = apps.get_model("capabilities", "ProviderKey").objects.values_list("provider_id", "key_variable")
    own = find_overrides({row.name: row.env_name or None for row in rows}).variables
    pairs = {(own.get(row.name, ""), endpoint_origin(row.endpoint)): None for row in rows}
    for row in rows:
        named = [row.key_variable, *(variable for provider, variable in further if provider == row.pk)]
        pairs |= {(variable, endpoint_origin(row.endpoint)): None for variable in named}
    model = apps.get_model("capabilities", "VariableOrigin")
    model.objects.bulk_create(model(variable=variable, origin=origin) for variable, origin in pairs if variable)


class Migration(migrations.Migration):
    dependencies = [
        ("capabilities", "0012_agent_links"),
    ]

    operations = [
        migrations.CreateModel(
            name="VariableOrigin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("variable", models.CharField(max_length=200)),
                ("origin", models.CharField(max_length=600)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("variable", "origin"), name="one_row_per_variable_and_origin")
                ],
            },
        ),
        migrations.RunPython(bind_present_uses, migrations.RunPython.noop),
    ]
