"""What an agent stored itself, as the files of `/v1/files` are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts.core.artifact import artifact_id
from artifacts.models import Artifact


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """An agent's own living artifacts, a page of them, and whether there are more behind it."""

    rows: tuple[Artifact, ...]
    has_more: bool


def list_own_files(agent: str, *, most: int, after: Artifact | None, purpose: str, newest_first: bool) -> OwnFiles:
    """What that agent stored itself, behind `after` in the order asked for; an empty purpose is any."""
    rows = Artifact.objects.owned_by(agent)
    if purpose:
        rows = rows.filter(metadata__purpose=purpose)
    if after is not None:
        rows = (
            rows.filter(created_at__lt=after.created_at)
            if newest_first
            else rows.filter(created_at__gt=after.created_at)
        )
    found = list(rows.order_by(*(("-created_at", "-id") if newest_first else ("created_at", "id")))[: most + 1])
    return OwnFiles(tuple(found[:most]), len(found) > most)


def find_own_file(agent: str, ref: str, *, purpose: str = "") -> Artifact | None:
    """The artifact behind a reference, when that agent stored it itself and it lives; an empty purpose is any."""
    bare = artifact_id(ref)
    rows = Artifact.objects.owned_by(agent)
    return (rows.filter(metadata__purpose=purpose) if purpose else rows).filter(pk=bare).first() if bare else None
