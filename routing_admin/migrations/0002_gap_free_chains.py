"""Keeps the positions of a chain free of gaps in the database itself, whoever writes to it."""

from django.db import migrations

APPEND_ONLY = """
CREATE TRIGGER candidate_positions_have_no_gap_on_{event}
BEFORE {event} ON routing_admin_candidate
WHEN NEW.position > 1 AND NOT EXISTS (
    SELECT 1 FROM routing_admin_candidate WHERE route_id = NEW.route_id AND position = NEW.position - 1
)
BEGIN
    SELECT RAISE(ABORT, 'positions of a chain must have no gap');
END
"""
CLOSE_UP = """
CREATE TRIGGER candidate_positions_close_up
AFTER DELETE ON routing_admin_candidate
BEGIN
    UPDATE routing_admin_candidate SET position = position - 1
    WHERE route_id = OLD.route_id AND position > OLD.position;
END
"""
DROP = "DROP TRIGGER IF EXISTS {name}"
NAMES = (
    "candidate_positions_have_no_gap_on_INSERT",
    "candidate_positions_close_up",
)


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for statement in (APPEND_ONLY.format(event="INSERT"), CLOSE_UP):
            schema_editor.execute(statement)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for name in NAMES:
            schema_editor.execute(DROP.format(name=name))


class Migration(migrations.Migration):
    dependencies = [("routing_admin", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
