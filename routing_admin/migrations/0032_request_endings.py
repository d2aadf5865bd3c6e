"""How a request ended is stored in its row, and the sums count it.

Most requests were answered: the column begins as a default that no row is rewritten for, and only the others are
updated, found through the index of those, some thousands at a time.
"""

from collections import defaultdict

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Greatest

from routing_admin.core.fallback.endings import RequestEnding, request_ending
from routing_admin.request_log.usage_sums import OTHERS, day_start

STEP = 5000
NOT_ANSWERED = "NOT (outcome = 'ok')"
COLUMN = "ALTER TABLE routing_admin_requestlog ADD COLUMN ending varchar(9) DEFAULT 'answered' NOT NULL"
DROP = "ALTER TABLE routing_admin_requestlog DROP COLUMN ending"
NAMES = ("started_at", "outcome", "agent", "task_type", "provider", "model", "team", "project", "end_user", "currency")


def fill_endings(apps, schema_editor):
    """Sets the ending of every request that was not answered, and takes the refused and cancelled out of failures."""
    rows = apps.get_model("routing_admin", "RequestLog").objects.using(schema_editor.connection.alias)
    others = rows.extra(where=[NOT_ANSWERED])  # noqa: S610  # the partial index is found by this text
    counts = defaultdict(lambda: [0, 0])
    for outcome in others.order_by().values_list("outcome", flat=True).distinct():
        ending = request_ending(outcome)
        others.filter(outcome=outcome).update(ending=ending.value)
        if ending is not RequestEnding.FAILED:
            for values in others.filter(outcome=outcome).order_by().values_list(*NAMES).iterator(STEP):
                _count(counts, values, is_refused=ending is RequestEnding.REFUSED)
    sums = apps.get_model("routing_admin", "UsageSum").objects.using(schema_editor.connection.alias)
    for place, (refused, cancelled) in counts.items():
        _correct(sums, place, refused, cancelled)


def _count(counts, values, *, is_refused):
    began, _outcome, *names = values
    names = [name or "" for name in names]
    for span, start in (("h", began.replace(minute=0, second=0, microsecond=0)), ("d", day_start(began))):
        counts[span, start, *names][0 if is_refused else 1] += 1


def _correct(sums, place, refused, cancelled):
    """Corrects the sum that these requests belong to; labels beyond the bound were counted under `OTHERS`."""
    span, start, agent, task_type, provider, model, team, project, user, currency = place
    of = sums.filter(
        span=span, start=start, agent=agent, task_type=task_type, provider=provider, model=model, currency=currency
    )
    for labels in ((team, project, user), (team, project, OTHERS), (OTHERS, OTHERS, user), (OTHERS, OTHERS, OTHERS)):
        if of.filter(team=labels[0], project=labels[1], end_user=labels[2]).update(
            refused=F("refused") + refused,
            cancelled=F("cancelled") + cancelled,
            failures=Greatest(F("failures") - refused - cancelled, 0),
        ):
            return


class Migration(migrations.Migration):
    dependencies = [("routing_admin", "0031_fire_drills_and_missed_calls")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(COLUMN, DROP, hints={"model_name": "requestlog"})],
            [
                migrations.AddField(
                    model_name="requestlog",
                    name="ending",
                    field=models.CharField(db_default="answered", max_length=9),
                )
            ],
        ),
        *(
            migrations.AddField(model_name="usagesum", name=name, field=models.PositiveBigIntegerField(db_default=0))
            for name in ("refused", "cancelled", "attempts")
        ),
        migrations.RunPython(fill_endings, migrations.RunPython.noop, hints={"model_name": "requestlog"}),
        migrations.RemoveIndex(model_name="requestlog", name="request_task"),
        migrations.RemoveIndex(model_name="requestlog", name="request_failed"),
        migrations.AddIndex(
            model_name="requestlog",
            index=models.Index(fields=["task_type", "-started_at", "ending", "fell_back"], name="request_task"),
        ),
        migrations.AddIndex(
            model_name="requestlog",
            index=models.Index(
                condition=models.Q(("outcome", "ok"), _negated=True),
                fields=["-started_at", "-id", "status", "outcome", "ending"],
                name="request_failed",
            ),
        ),
    ]
