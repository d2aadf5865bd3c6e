"""The table of alerts: what each kind means, how bad it is, what it is about, and the page that says what to do.

An alert is told once for its kind and subject while it lasts. A subject is a name that a program can compare; what a
person reads is the sentence of its stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.worded import Fact, Worded, worded


class AlertKind(StrEnum):
    """What is wrong; the value is the word in bodies, metrics and addresses."""

    KEY_REFUSED = "key_refused"
    BALANCE_GONE = "balance_gone"
    ALL_COOLING = "all_cooling"
    BUDGET = "budget"
    DISK = "disk"
    RETIRED_MODEL = "retired_model"
    CONFIGURATION_REJECTED = "configuration_rejected"


class Severity(StrEnum):
    """Whether somebody is to get up at night."""

    CRITICAL = "critical"
    WARNING = "warning"


class Stage(StrEnum):
    """Which of a kind's sentences holds."""

    USUAL = "usual"
    EVERY_PROVIDER = "every_provider"
    WARNED = "warned"
    SPENT = "spent"
    UNKNOWN_MODEL = "unknown_model"


STATE, EVIDENCE = timedelta(minutes=1), timedelta(days=1)
"""How long an alert lasts after it was last found: what is looked at all the time, and what calls alone can show."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind: its name for people, how bad it is, its subject, its sentences, what to do, and the page that helps.

    `page` is a file of the repository with the anchor in it; `lasts` is how long after its last sign it is over.
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
            worded("Key refused"),
            CRITICAL,
            worded("provider"),
            {Stage.USUAL: worded("The provider %(name)s refuses its key (%(status)s).")},
            worded("Enter a new key, then test the connection."),
            "docs/alerts.md#key_refused",
            EVIDENCE,
        ),
        AlertKind.BALANCE_GONE: KindRow(
            worded("Balance used up"),
            CRITICAL,
            worded("provider"),
            {Stage.USUAL: worded("The account at %(name)s is empty, or its quota is used up (%(status)s).")},
            worded("Pay the provider or enter another key, then press Try again now on the dashboard."),
            "docs/alerts.md#balance_gone",
            EVIDENCE,
        ),
        AlertKind.ALL_COOLING: KindRow(
            worded("No candidate available"),
            CRITICAL,
            worded("task route"),
            {
                Stage.USUAL: worded(
                    "Every candidate of the task route %(name)s is cooling down after failures. Its requests fail."
                ),
                Stage.EVERY_PROVIDER: worded(
                    "Every candidate of every task route is cooling down after failures. All requests fail."
                ),
            },
            worded("Add a candidate of another provider, or press Try again now on the dashboard."),
            "docs/runbook/all-cooling.md",
            STATE,
        ),
        AlertKind.BUDGET: KindRow(
            worded("Budget"),
            WARNING,
            worded("agent, key or label"),
            {
                Stage.WARNED: worded("%(name)s has used %(percent)s%% of its limit “%(meter)s”."),
                Stage.SPENT: worded("%(name)s has used up its limit “%(meter)s”. Further calls get 429."),
            },
            worded("Raise the limit, or wait until it starts again."),
            "docs/alerts.md#budget",
            STATE,
        ),
        AlertKind.DISK: KindRow(
            worded("Disk nearly full"),
            CRITICAL,
            worded("data directory"),
            {Stage.USUAL: worded("Only %(free)s MiB left on the data directory's disk.")},
            worded("Keep less, then free the space with: python manage.py prune"),
            "docs/runbook/disk-full.md",
            STATE,
        ),
        AlertKind.RETIRED_MODEL: KindRow(
            worded("Model retired"),
            WARNING,
            worded("model"),
            {
                Stage.USUAL: worded("%(name)s is in use, but its provider stopped serving it on %(day)s."),
                Stage.UNKNOWN_MODEL: worded("%(name)s is in use, but its provider says there is no such model."),
            },
            worded("Replace the model. The dashboard offers its successor if one is known."),
            "docs/alerts.md#retired_model",
            EVIDENCE,
        ),
        AlertKind.CONFIGURATION_REJECTED: KindRow(
            worded("Configuration rejected"),
            WARNING,
            worded("who imported it"),
            {Stage.USUAL: worded("An import by %(name)s was refused; the configuration is unchanged: %(problem)s")},
            worded("Correct the file and import it again. python manage.py check_config FILE lists every problem."),
            "docs/alerts.md#configuration_rejected",
            EVIDENCE,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was found: its kind, the subject that it is known by, the sentence about it, and how long that holds."""

    kind: AlertKind
    subject: str
    sentence: Worded
    lasts: timedelta

    @property
    def is_state(self) -> bool:
        """Whether it is looked at all the time, so that silence soon ends it."""
        return self.lasts <= STATE


def trouble_of(
    kind: AlertKind, subject: str, stage: Stage = Stage.USUAL, lasts: timedelta | None = None, **facts: Fact
) -> Trouble:
    """A trouble with the sentence of its stage; `name` in it is the subject where no other is given.

    It lasts as long after its last sign as its kind does, unless `lasts` says otherwise.
    """
    row = KINDS[kind]
    return Trouble(kind, subject, worded(row.sentences[stage], **{"name": subject, **facts}), lasts or row.lasts)
