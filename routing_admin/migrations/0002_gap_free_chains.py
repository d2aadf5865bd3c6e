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


POSTGRESQL = """
CREATE FUNCTION candidate_positions_have_no_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.position > 1 AND NOT EXISTS (
        SELECT 1 FROM routing_admin_candidate WHERE route_id = NEW.route_id AND position = NEW.position - 1
    ) THEN
        RAISE EXCEPTION 'positions of a chain must have no gap' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER candidate_positions_have_no_gap BEFORE INSERT ON routing_admin_candidate
FOR EACH ROW EXECUTE FUNCTION candidate_positions_have_no_gap();
CREATE FUNCTION candidate_positions_close_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved record;
BEGIN
    FOR moved IN  -- one by one and from the first on, so that no two have one position meanwhile
        SELECT id, place FROM (
            SELECT id, position, row_number() OVER (PARTITION BY route_id ORDER BY position) AS place
            FROM routing_admin_candidate WHERE route_id IN (SELECT route_id FROM gone)
        ) AS counted WHERE position <> place ORDER BY place
    LOOP
        UPDATE routing_admin_candidate SET position = moved.place WHERE id = moved.id;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER candidate_positions_close_up AFTER DELETE ON routing_admin_candidate
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION candidate_positions_close_up();
"""
DROP_POSTGRESQL = """
DROP FUNCTION candidate_positions_have_no_gap() CASCADE;
DROP FUNCTION candidate_positions_close_up() CASCADE;
"""
STATEMENTS = {
    "sqlite": (APPEND_ONLY.format(event="INSERT"), CLOSE_UP),
    "postgresql": (POSTGRESQL,),
}
DROPS = {"sqlite": [DROP.format(name=name) for name in NAMES], "postgresql": [DROP_POSTGRESQL]}


def create(apps, schema_editor):
    for statement in STATEMENTS.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement)


def drop(apps, schema_editor):
    for statement in DROPS.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("routing_admin", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
