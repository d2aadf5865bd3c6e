"""What calls are labelled with, for usage and budgets: a team, a project, the end user they are made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class LabelKind(StrEnum):
    """A sort of label, as addresses and JSON name it."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"


LONGEST: Mapping[LabelKind, int] = {LabelKind.TEAM: 64, LabelKind.PROJECT: 64, LabelKind.USER: 200}
"""So many letters are kept of each; an end user's may be the id that a client made."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one call; empty is none."""

    team: str = ""
    project: str = ""
    user: str = ""

    def of(self, label: LabelKind) -> str:
        """The one of that sort."""
        return str(getattr(self, label.value))

    def over(self, others: Labels) -> Labels:
        """These, and the others' where there is none."""
        return Labels(self.team or others.team, self.project or others.project, self.user or others.user)


NO_LABELS = Labels()


def clean_label(label: LabelKind, value: Any) -> str:
    """What is kept of a label: one line of what can be printed, cut to its length; nothing of anything but text."""
    if not isinstance(value, str):
        return ""
    longest = LONGEST[label]
    if not value.isprintable():
        value = "".join(each if each.isprintable() else " " for each in value[: 4 * longest])
    return " ".join(value[: 4 * longest].split())[:longest].rstrip()
