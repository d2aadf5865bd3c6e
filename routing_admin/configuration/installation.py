"""Read the settings that apply to the whole installation: retention, quotas and languages."""

from __future__ import annotations

from dataclasses import dataclass

from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.models import Installation, Language


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """Retention periods in days, and storage quotas in bytes, in total and for each agent; None means unlimited."""

    request_days: int
    artifact_days: int | None = None
    quota_bytes: int | None = None
    agent_quota_bytes: int | None = None


def retention_settings(row: Installation) -> RetentionSettings:
    return RetentionSettings(row.request_days, row.artifact_days, row.quota_bytes, row.agent_quota_bytes)


def read_retention_settings() -> RetentionSettings:
    return retention_settings(Installation.current())


def added_languages() -> dict[str, str]:
    """Return the language directives that administrators added or changed, by language code."""
    return dict(Language.objects.values_list("code", "directive"))


def directives() -> dict[str, str]:
    """Return the directives of all languages, built-in languages first."""
    return {**LANGUAGE_DIRECTIVES, **added_languages()}
