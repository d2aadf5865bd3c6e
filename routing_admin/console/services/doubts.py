"""Sentences for doubts about what models read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.providers.probes.drift import DriftKind
from capabilities.core.translatable import insert_facts
from capabilities.labels import CONTENTS, capability_label
from routing_admin.console.services.queries import (
    DriftLine,
)

SENTENCES: Mapping[str, str | Promise] = {
    DriftKind.REFUSED: gettext_lazy(
        "%(name)s should read %(kinds)s, but answered a request containing them with status %(status)s."
    ),
    DriftKind.DENIED: gettext_lazy("%(name)s is declared to read %(kinds)s, but a probe found that it cannot."),
    DriftKind.STOPPED: gettext_lazy("The nightly probe found that %(name)s no longer reads %(kinds)s."),
    DriftKind.STARTED: gettext_lazy("The nightly probe found that %(name)s now reads %(kinds)s."),
}


@dataclass(frozen=True, slots=True)
class DriftView:
    """A drift with its sentence."""

    line: DriftLine
    sentence: str
    kinds: str | Promise

    @property
    def tone(self) -> str:
        # A capability that the model has gained is good news.
        return "info" if self.line.row.kind == DriftKind.STARTED else "warn"


def render_drifts(lines: Iterable[DriftLine]) -> list[DriftView]:
    return [_render(line) for line in lines]


def _render(line: DriftLine) -> DriftView:
    row = line.row
    kinds = CONTENTS.get(row.capability, capability_label(row.capability))
    facts = {"name": line.service.service_id, "kinds": kinds, "status": row.status}
    return DriftView(line, insert_facts(str(SENTENCES[row.kind]), facts), kinds)
