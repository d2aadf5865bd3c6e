"""The panel with the form of a simulation: its posted fields, and the request that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.http import Http404, QueryDict
from django.utils.translation import gettext as _

from artifacts.library.queries import list_attachable
from artifacts.storage.content import build_file_part
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.vocabulary import Kind
from capabilities.labels import KINDS
from routing_admin.console.simulate import phrases as words
from routing_admin.console.simulate.phrases import OUTCOMES, StopView
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES
from routing_admin.dispatch.simulation import NOT_REACHED, TYPES, build_placeholder

if TYPE_CHECKING:
    from artifacts.models import Artifact

MAX_MESSAGE_CHARS = 20_000
"""Maximum number of characters of a message. Longer messages are truncated."""
KIBIBYTE = 1024
MAX_PLACEHOLDER_BYTES = 25 * 1024 * KIBIBYTE
"""Maximum size in bytes of a placeholder, which a simulation uses in place of a file."""
MAX_OF_A_KIND = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as the page shows it. `answer` is the answer of a real model, or empty for a simulation."""

    sentence: str
    tone: str
    stops: list[StopView]
    real: bool
    code: str = ""
    answer: str = ""
    request_id: str = ""

    @property
    def chips(self) -> list[dict[str, str]]:
        return [
            {"name": stop.name, "code": stop.code, "tone": stop.tone}
            for stop in self.stops
            if stop.code != str(words.SKIPPED[NOT_REACHED])
        ]


@dataclass(slots=True)
class Panel:
    """The panel's fields and, if a run was requested, its result."""

    message: str
    language: str
    artifact_ids: list[str]
    stream: bool
    assume_usable: bool
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)
    languages: list[tuple[str, str]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    run_view: RunView | None = None
    problem: str = ""

    @property
    def words(self) -> list[tuple[str, Any]]:
        return list(OUTCOMES.items())

    @property
    def chosen(self) -> int:
        return len(self.artifact_ids)

    @property
    def placeholder_fields(self) -> list[tuple[str, Any, str]]:
        """Each kind of placeholder file, with its label and the sizes that were typed."""
        return [(kind.value, KINDS[kind], self.placeholders.get(kind.value, "")) for kind in TYPES]

    def script(self) -> Mapping[int, Sequence[str]]:
        return {index: (word,) for index, (_card, _name, word) in enumerate(self.outcomes)}


def read_panel(data: QueryDict, configuration: Configuration, *, may_attach: bool) -> Panel:
    """Return the panel as posted, or with default values."""
    # Unticked check boxes are not posted, so the message field shows whether the form was posted.
    is_sent = "sim-message" in data
    panel = Panel(
        message=str(data.get("sim-message", "")) if is_sent else _("What is in this file?"),
        language=str(data.get("sim-language", "")),
        artifact_ids=[str(artifact_id) for artifact_id in data.getlist("sim-artifact") if artifact_id],
        stream="sim-stream" in data,
        assume_usable="sim-usable" in data,
        placeholders={kind.value: text for kind in TYPES if (text := str(data.get(f"sim-{kind.value}", "")).strip())},
    )
    directives = {**LANGUAGE_DIRECTIVES, **{language.code: language.directive for language in configuration.languages}}
    panel.languages = [(code, f"{code} · {text}") for code, text in directives.items()]
    panel.artifacts = list_attachable(panel.artifact_ids) if may_attach else []
    return panel


def set_outcomes(panel: Panel, data: QueryDict, candidates: Sequence[tuple[str, str]]) -> Panel:
    """Set each candidate's scripted outcome as posted, by default to an answer.

    Candidates are given as (card, name).
    """
    outcomes = [(card, name, str(data.get(f"out-{card}", "200"))) for card, name in candidates]
    panel.outcomes = [(card, name, word if word in SCRIPTED else "200") for card, name, word in outcomes]
    return panel


def read_sizes(text: str) -> list[int]:
    """Parse sizes in KiB, separated by commas, into bytes. Raise `ValueError` if one is invalid."""
    # The comma on Chinese keyboards is full-width.
    sizes = [round(float(word) * KIBIBYTE) for word in text.replace("，", ",").split(",") if word.strip()]
    if len(sizes) > MAX_OF_A_KIND or any(not 0 < size <= MAX_PLACEHOLDER_BYTES for size in sizes):
        raise ValueError(text)
    return sizes


def write_size(size: int) -> str:
    return f"{-(-size * 10 // KIBIBYTE) / 10:g}"


def build_placeholders(panel: Panel) -> list[FilePart]:
    """Return the placeholder files. If typed sizes are invalid, set the panel's problem."""
    parts: list[FilePart] = []
    for kind, text in panel.placeholders.items():
        try:
            parts += [
                build_placeholder(Kind(kind), size, number) for number, size in enumerate(read_sizes(text), start=1)
            ]
        except (ValueError, OverflowError):
            panel.problem = _("Enter placeholder sizes in KiB, up to %(most)s each, separated by commas: 200, 1500") % {
                "most": MAX_PLACEHOLDER_BYTES // KIBIBYTE
            }
    return parts


def build_chat(panel: Panel) -> ChatRequest:
    """Return the request with message, artifacts and placeholder files. Raise `Http404` for an unknown artifact."""
    rows = {row.pk: row for row in panel.artifacts}
    parts: list[FilePart] = []
    for pk in panel.artifact_ids:
        if pk not in rows:
            raise Http404
        parts.append(build_file_part(rows[pk]))
    return ChatRequest(
        (Message(Role.USER, (TextPart(panel.message[:MAX_MESSAGE_CHARS]), *parts, *build_placeholders(panel))),)
    )
