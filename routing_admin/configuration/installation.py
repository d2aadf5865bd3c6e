"""What holds for the installation as a whole, read from its rows: how much and how long is kept, and its languages."""

from __future__ import annotations

from dataclasses import dataclass

from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.models import Installation, Language


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long requests and artifacts are kept, in days, and how many bytes of artifacts, of all and of each agent.

    None is without end.
    """

    request_days: int
    artifact_days: int | None = None
    quota_bytes: int | None = None
    agent_quota_bytes: int | None = None


def keeping_of(row: Installation) -> Keeping:
    """What that row says is kept."""
    return Keeping(row.request_days, row.artifact_days, row.quota_bytes, row.agent_quota_bytes)


def read_retention_settings() -> Keeping:
    """What is kept, and for how long, at this moment."""
    return keeping_of(Installation.current())


def added_languages() -> dict[str, str]:
    """The directive of each language that somebody added, or of a built-in one that has another; by its code."""
    return dict(Language.objects.values_list("code", "directive"))


def directives() -> dict[str, str]:
    """Every language a model can be told to answer in, built-in ones first, with its directive."""
    return {**LANGUAGE_DIRECTIVES, **added_languages()}
