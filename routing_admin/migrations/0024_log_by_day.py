"""On PostgreSQL the request log is partitioned by day, and a change of the configuration is told to whoever listens.

Keys that would go across days are none there: a partitioned table has only such as hold the day. Each part has them.
"""

from django.db import migrations
from django.db.migrations.exceptions import IrreversibleError

from routing_admin.platform.databases.postgresql.partitions import ATTEMPTS, REQUESTS, partition_statements

TELL = """
CREATE FUNCTION routing_admin_tell_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('routing_admin', NEW.version::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER routing_admin_tell_change AFTER INSERT OR UPDATE OF version ON routing_admin_installation
FOR EACH ROW EXECUTE FUNCTION routing_admin_tell_change();
"""


def partition(apps, schema_editor):
    """Makes both tables anew, with their columns, indexes and rows; what is deferred is checked first."""
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for table in (ATTEMPTS, REQUESTS):
        model = apps.get_model("routing_admin", "attemptlog" if table is ATTEMPTS else "requestlog")
        _make_anew(schema_editor, table)
        for index in model._meta.indexes:
            schema_editor.execute(index.create_sql(model, schema_editor))
    schema_editor.execute("CREATE INDEX routing_admin_attemptlog_at ON routing_admin_attemptlog (at)")
    schema_editor.execute(TELL)


def _make_anew(schema_editor, table):
    old = f"{table.name}_whole"
    statements = [
        f"ALTER TABLE {table.name} RENAME TO {old}",
        f"CREATE TABLE {table.name} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE ({table.moment})",
        partition_statements(table, table.rest),
        f"ALTER TABLE {table.name} ATTACH PARTITION {table.rest} DEFAULT",
        f"INSERT INTO {table.name} SELECT * FROM {old}",
    ]
    if table is ATTEMPTS:  # an identity is no column of a part
        sequence = f"{table.name}_number"
        statements += [
            f"CREATE SEQUENCE {sequence} OWNED BY {table.name}.id",
            f"SELECT setval('{sequence}', coalesce(max(id), 0) + 1, false) FROM {old}",
            *(
                f"ALTER TABLE {each} ALTER COLUMN id SET DEFAULT nextval('{sequence}')"
                for each in (table.name, table.rest)
            ),
        ]
    for statement in [*statements, f"DROP TABLE {old} CASCADE"]:
        schema_editor.execute(statement)


def unpartition(apps, schema_editor):
    """There is no way back that would keep the rows."""
    if schema_editor.connection.vendor == "postgresql":
        raise IrreversibleError("On PostgreSQL the request log cannot be made one table again.")


class Migration(migrations.Migration):
    dependencies = [
        ("routing_admin", "0023_linked_identities"),
    ]

    operations = [migrations.RunPython(partition, unpartition, hints={"model_name": "requestlog"})]
