"""The panel of a simulation: what the page sent as values, and the request that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.http import Http404, QueryDict
from django.utils.translation import gettext as _

from artifacts.queries.library import list_attachable
from artifacts.storage.content import part_of
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.dispatch.simulation import NOT_REACHED
from routing_admin.views.simulate import phrases as words
from routing_admin.views.simulate.phrases import OUTCOMES, StopView

if TYPE_CHECKING:
    from artifacts.models import Artifact

LONGEST = 20_000
"""Characters of a message; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as the page shows it: one sentence, chips, and every candidate; `answer` is what was really said."""

    sentence: str
    tone: str
    stops: list[StopView]
    real: bool
    code: str = ""
    answer: str = ""
    request_id: str = ""

    @property
    def chips(self) -> list[dict[str, str]]:
        """The candidates reached, as a chain of chips."""
        return [
            {"name": stop.name, "code": stop.code, "tone": stop.tone}
            for stop in self.stops
            if stop.code != str(words.SKIPPED[NOT_REACHED])
        ]


@dataclass(slots=True)
class Panel:
    """The panel's fields and, once asked for, its run."""

    message: str
    language: str
    artifact_ids: list[str]
    stream: bool
    assume_usable: bool
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)
    languages: list[tuple[str, str]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    run_view: RunView | None = None
    problem: str = ""

    @property
    def words(self) -> list[tuple[str, Any]]:
        """The outcomes there are to choose."""
        return list(OUTCOMES.items())

    def script(self) -> Mapping[int, Sequence[str]]:
        """The chosen outcome of each place."""
        return {at: (word,) for at, (_card, _name, word) in enumerate(self.outcomes)}


def panel_in(data: QueryDict, configuration: Configuration, *, may_attach: bool) -> Panel:
    """The panel as the page sent it, with its defaults where it was not."""
    is_sent = "sim-message" in data
    panel = Panel(
        message=str(data.get("sim-message", "")) if is_sent else _("What is in this file?"),
        language=str(data.get("sim-language", "")),
        artifact_ids=[str(one) for one in data.getlist("sim-artifact") if one],
        stream="sim-stream" in data,
        assume_usable="sim-usable" in data,
    )
    directives = {**LANGUAGE_DIRECTIVES, **{one.code: one.directive for one in configuration.languages}}
    panel.languages = [(code, f"{code} · {text}") for code, text in directives.items()]
    panel.artifacts = list_attachable(panel.artifact_ids) if may_attach else []
    return panel


def set_outcomes(panel: Panel, data: QueryDict, places: Sequence[tuple[str, str]]) -> Panel:
    """The panel with an outcome for each (card, name) of a chain: what was chosen before, else an answer."""
    outcomes = [(card, name, str(data.get(f"out-{card}", "200"))) for card, name in places]
    panel.outcomes = [(card, name, word if word in SCRIPTED else "200") for card, name, word in outcomes]
    return panel


def chat_of(panel: Panel) -> ChatRequest:
    """The request: the message, and the artifacts that are attached. Raises `Http404` for one that never was."""
    rows = {row.pk: row for row in panel.artifacts}
    parts: list[FilePart] = []
    for pk in panel.artifact_ids:
        if pk not in rows:
            raise Http404
        parts.append(part_of(rows[pk]))
    return ChatRequest((Message(Role.USER, (TextPart(panel.message[:LONGEST]), *parts)),))
