"""Table of alert kinds: meaning, severity, subject, remedy and help page.

While an alert lasts, it is sent only once per kind and subject. The subject is a machine-readable name for the affected
object. The sentence describes the problem to users; each stage of an alert has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.translatable import Fact, Translatable, translatable


class AlertKind(StrEnum):
    """Kind of alert; the value appears in payloads, metrics and URLs."""

    KEY_REFUSED = "key_refused"
    BALANCE_GONE = "balance_gone"
    ALL_COOLING = "all_cooling"
    BUDGET = "budget"
    DISK = "disk"
    RETIRED_MODEL = "retired_model"
    CONFIGURATION_REJECTED = "configuration_rejected"
    DATABASE = "database"
    ARTIFACT_STORE = "artifact_store"
    REDIS = "redis"
    LOG_WAITING = "log_waiting"
    LOG_LOST = "log_lost"
    CONFIGURATION_STALE = "configuration_stale"
    WEBHOOK_FAILING = "webhook_failing"
    BACKUP_OVERDUE = "backup_overdue"
    PRUNE_OVERDUE = "prune_overdue"
    PROCESS_CRASHED = "process_crashed"


class Severity(StrEnum):
    """How urgent an alert is: a critical alert justifies waking an operator."""

    CRITICAL = "critical"
    WARNING = "warning"


class Stage(StrEnum):
    """Variant of an alert. Each kind has one sentence for each of its stages."""

    USUAL = "usual"
    EVERY_PROVIDER = "every_provider"
    WARNED = "warned"
    SPENT = "spent"
    UNKNOWN_MODEL = "unknown_model"
    READ_ONLY = "read_only"
    FORBIDDEN = "forbidden"
    FULL = "full"
    OUTDATED = "outdated"
    IN_MEMORY = "in_memory"


STATE, EVENT, EVIDENCE = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
"""How long an alert lasts after the problem was last seen: STATE is for conditions that are monitored continuously,
EVENT for single events, and EVIDENCE for problems that only requests reveal.
"""


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind of alert.

    `page` is a file in the repository, with an anchor. The alert ends when `lasts` has passed since the problem was
    last seen.
    """

    title: str
    severity: Severity
    subject: str
    sentences: Mapping[Stage, str]
    remedy: str
    page: str
    lasts: timedelta


CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING

KINDS: Mapping[AlertKind, KindRow] = MappingProxyType(
    {
        AlertKind.KEY_REFUSED: KindRow(
            translatable("Key refused"),
            CRITICAL,
            translatable("provider"),
            {Stage.USUAL: translatable("The provider %(name)s refuses its key (%(status)s).")},
            translatable("Enter a new key, then test the connection."),
            "docs/alerts.md#key_refused",
            EVIDENCE,
        ),
        AlertKind.BALANCE_GONE: KindRow(
            translatable("Balance used up"),
            CRITICAL,
            translatable("provider"),
            {Stage.USUAL: translatable("The account at %(name)s is empty, or its quota is used up (%(status)s).")},
            translatable("Pay the provider or enter another key, then press Try again now on the dashboard."),
            "docs/alerts.md#balance_gone",
            EVIDENCE,
        ),
        AlertKind.ALL_COOLING: KindRow(
            translatable("No candidate available"),
            CRITICAL,
            translatable("task route"),
            {
                Stage.USUAL: translatable(
                    "Every candidate of the task route %(name)s is cooling down after failures. Its requests fail."
                ),
                Stage.EVERY_PROVIDER: translatable(
                    "Every candidate of every task route is cooling down after failures. All requests fail."
                ),
            },
            translatable("Add a candidate of another provider, or press Try again now on the dashboard."),
            "docs/runbook/all-cooling.md",
            STATE,
        ),
        AlertKind.BUDGET: KindRow(
            translatable("Budget"),
            WARNING,
            translatable("agent, key or label"),
            {
                Stage.WARNED: translatable("%(name)s has used %(percent)s%% of its limit “%(meter)s”."),
                Stage.SPENT: translatable("%(name)s has used up its limit “%(meter)s”. Further calls get 429."),
            },
            translatable("Raise the limit, or wait until it starts again."),
            "docs/alerts.md#budget",
            STATE,
        ),
        AlertKind.DISK: KindRow(
            translatable("Disk nearly full"),
            CRITICAL,
            translatable("data directory"),
            {Stage.USUAL: translatable("Only %(free)s MiB left on the data directory's disk.")},
            translatable("Keep less, then free the space with: routing-admin prune"),
            "docs/runbook/disk-full.md",
            STATE,
        ),
        AlertKind.RETIRED_MODEL: KindRow(
            translatable("Model retired"),
            WARNING,
            translatable("model"),
            {
                Stage.USUAL: translatable("%(name)s is in use, but its provider stopped serving it on %(day)s."),
                Stage.UNKNOWN_MODEL: translatable("%(name)s is in use, but its provider says there is no such model."),
            },
            translatable("Replace the model. The dashboard offers its successor if one is known."),
            "docs/alerts.md#retired_model",
            EVIDENCE,
        ),
        AlertKind.CONFIGURATION_REJECTED: KindRow(
            translatable("Configuration rejected"),
            WARNING,
            translatable("who imported it"),
            {
                Stage.USUAL: translatable(
                    "An import by %(name)s was refused; the configuration is unchanged: %(problem)s"
                )
            },
            translatable("Correct the file and import it again. routing-admin check FILE lists every problem."),
            "docs/alerts.md#configuration_rejected",
            EVIDENCE,
        ),
        AlertKind.DATABASE: KindRow(
            translatable("Database unavailable"),
            CRITICAL,
            translatable("database"),
            {
                Stage.USUAL: translatable(
                    "The database does not answer %(server)s. Calls with known keys continue, and their log entries "
                    "wait in files; uploads, new keys and changes fail."
                ),
                Stage.READ_ONLY: translatable(
                    "The database is read-only for %(server)s. Calls with known keys continue, and their log entries "
                    "wait in files; uploads and changes fail."
                ),
                Stage.FORBIDDEN: translatable(
                    "The database denies %(server)s a right. Calls with known keys continue, and their log entries "
                    "wait in files; uploads or changes may fail. routing-admin doctor names the right."
                ),
                Stage.FULL: translatable(
                    "The disk of the database is full. Calls with known keys continue, and their log entries wait in "
                    "files of %(server)s; uploads and changes fail."
                ),
                Stage.OUTDATED: translatable(
                    "The database lacks tables or columns that %(server)s needs, probably during an upgrade. Calls "
                    "with known keys continue, and their log entries wait in files."
                ),
            },
            translatable("Start or correct the database, or connect to the primary. Nothing needs to be restored."),
            "docs/runbook/database-away.md",
            STATE,
        ),
        AlertKind.ARTIFACT_STORE: KindRow(
            translatable("Artifact store unavailable"),
            CRITICAL,
            translatable("artifact store"),
            {Stage.USUAL: translatable("The artifact store does not answer. Uploads and calls with files fail.")},
            translatable("Check the store. routing-admin doctor says why it does not answer."),
            "docs/runbook/store-away.md",
            STATE,
        ),
        AlertKind.REDIS: KindRow(
            translatable("Redis unavailable"),
            WARNING,
            translatable("Redis"),
            {Stage.USUAL: translatable("%(problem)s Calls continue; limits are drawn from the database.")},
            translatable("Start Redis, or correct REDIS_URL."),
            "docs/runbook/redis-away.md",
            STATE,
        ),
        AlertKind.LOG_WAITING: KindRow(
            translatable("Log entries waiting"),
            WARNING,
            translatable("server"),
            {
                Stage.USUAL: translatable(
                    "Requests have waited for the request log on %(name)s for %(seconds)s seconds."
                ),
                Stage.IN_MEMORY: translatable(
                    "Neither the database nor the disk of %(server)s takes log entries: %(count)s wait in memory. A "
                    "restart loses them. Once memory has no more room for them, the newest are lost."
                ),
            },
            translatable("Make room on the disk of the data directory, then get the database to answer again."),
            "docs/runbook/database-away.md",
            STATE,
        ),
        AlertKind.LOG_LOST: KindRow(
            translatable("Log entries lost"),
            CRITICAL,
            translatable("server"),
            {Stage.USUAL: translatable("Requests that a process of %(name)s could not log: %(count)s. They are lost.")},
            translatable("The server's log names them. Check the database and the disk."),
            "docs/alerts.md#log_lost",
            EVENT,
        ),
        AlertKind.CONFIGURATION_STALE: KindRow(
            translatable("Configuration outdated"),
            WARNING,
            translatable("server"),
            {
                Stage.USUAL: translatable(
                    "%(name)s has not been able to read the configuration for %(seconds)s seconds."
                )
            },
            translatable("Restore the database. Until then, changes and revoked keys are not noticed."),
            "docs/runbook/database-away.md",
            STATE,
        ),
        AlertKind.WEBHOOK_FAILING: KindRow(
            translatable("Alerts are not delivered"),
            WARNING,
            translatable("webhook"),
            {Stage.USUAL: translatable("Alerts cannot be delivered to %(name)s. %(problem)s")},
            translatable("Correct the webhook's address, then send a test."),
            "docs/alerts.md#webhook_failing",
            EVIDENCE,
        ),
        AlertKind.BACKUP_OVERDUE: KindRow(
            translatable("Backup overdue"),
            WARNING,
            translatable("backup"),
            {Stage.USUAL: translatable("The last backup was made on %(day)s, and the next one is overdue.")},
            translatable("Run: routing-admin backup. For another tool's: routing-admin backup --record"),
            "docs/alerts.md#backup_overdue",
            EVENT,
        ),
        AlertKind.PRUNE_OVERDUE: KindRow(
            translatable("Prune overdue"),
            WARNING,
            translatable("prune"),
            {Stage.USUAL: translatable("prune last ran on %(day)s, and the next run is overdue. The disk fills up.")},
            translatable("Run: routing-admin prune, and find out why it no longer runs daily."),
            "docs/alerts.md#prune_overdue",
            EVENT,
        ),
        AlertKind.PROCESS_CRASHED: KindRow(
            translatable("Process crashed"),
            WARNING,
            translatable("server"),
            {
                Stage.USUAL: translatable(
                    "A process on %(name)s crashed, was killed or ran out of memory. Its calls broke, and what waited "
                    "in its memory for the request log is lost."
                )
            },
            translatable("The system's log says why it ended: journalctl -k | grep -i 'killed process'"),
            "docs/alerts.md#process_crashed",
            EVENT,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Condition:
    kind: AlertKind
    subject: str
    sentence: Translatable
    lasts: timedelta

    @property
    def is_state(self) -> bool:
        """Whether the condition is monitored continuously. Its alert then ends soon after the problem does."""
        return self.lasts <= STATE


def build_condition(
    kind: AlertKind, subject: str, stage: Stage = Stage.USUAL, lasts: timedelta | None = None, **facts: Fact
) -> Condition:
    """Return a condition of this kind, described by the sentence for the given stage.

    `facts` fill the sentence's placeholders; `name` defaults to the subject. `lasts` overrides the duration set for
    this kind.
    """
    row = KINDS[kind]
    return Condition(
        kind, subject, translatable(row.sentences[stage], **{"name": subject, **facts}), lasts or row.lasts
    )


# A daily or weekly job is overdue if it has not run for twice the usual interval between its earlier runs.

DAY = timedelta(days=1)
MIN_INTERVAL = timedelta(hours=6)
"""Runs that start within this time of each other count as one run, because someone may have repeated the job by
hand.
"""
DEFAULT_INTERVAL = timedelta(days=4)
"""Assumed interval of a job that has run only once."""
MAX_INTERVAL = 31 * DAY


def is_overdue(runs: Sequence[datetime], now: datetime) -> bool:
    """Return whether twice the usual interval has passed since the last run; `runs` lists the newest run first."""
    # A job that has never run is not set up, so it cannot be overdue.
    if not runs:
        return False
    last = runs[0]
    interval = next((last - run for run in runs if last - run >= MIN_INTERVAL), DEFAULT_INTERVAL)
    return now - last > 2 * min(max(interval, DAY), MAX_INTERVAL)


def spent_subject(subject: str) -> str:
    """Return the subject of the alert for an exhausted budget.

    The warning before the budget runs out uses `subject` itself, so the two alerts do not share a subject.
    """
    return f"{subject} 100%"
