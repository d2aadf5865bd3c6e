"""The calls by which models described files for one request's candidates, as its page tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.delivery.model_description import DescriptionState
from capabilities.core.translatable import insert_facts
from routing_admin.console.base.tags.drawing import Bar, Track
from routing_admin.models import AttemptLog, RequestLog

Text = str | Promise


LOST: Mapping[str, Text] = {
    "image": gettext_lazy("the image"),
    "audio": gettext_lazy("the audio"),
    "video": gettext_lazy("the video"),
    "document": gettext_lazy("the document"),
    "text": gettext_lazy("the text"),
}
"""What a model did not get, in a sentence."""


def name_kind(kind: str) -> str:
    """A file of that kind that has no name, in a sentence."""
    return str(LOST.get(kind, _("the file")))


@dataclass(frozen=True, slots=True)
class LoggedDescriberCall:
    """One of them: who described which file, when within the request, and with how many tokens.

    `fault` says why there are no words; `request_id` names its own entry in the log, and `entry`, once it is looked up,
    knows what it cost.
    """

    describer: str
    file: str
    request_id: str
    started_ms: float
    duration_ms: float
    prompt_tokens: int | None
    completion_tokens: int | None
    fault: str
    entry: RequestLog | None = None

    @property
    def label(self) -> str:
        """Who describes what, in the reader's language."""
        return insert_facts(_("%(describer)s describes %(file)s"), {"describer": self.describer, "file": self.file})

    @property
    def track(self) -> Track:
        """Its line in the waterfall."""
        tone = "bad" if self.fault else "info"
        bar = Bar(self.started_ms, self.started_ms + self.duration_ms, tone)
        return Track(self.label, (bar,), is_attempt=False)


def describer_of(delivery: Mapping[str, Any]) -> str:
    """Who described a file for a candidate; empty where nobody did."""
    description = delivery.get("description") or {}
    return str(description.get("describer", "")) if description.get("state") == DescriptionState.BY_MODEL else ""


def list_describer_calls(row: AttemptLog) -> Iterator[LoggedDescriberCall]:
    """Those that were made before this attempt, each once."""
    known: set[str] = set()
    for delivery in row.deliveries:
        description: Mapping[str, Any] = delivery.get("description") or {}
        call: Mapping[str, Any] = description.get("call") or {}
        if not call or call["requestId"] in known:
            continue
        known.add(call["requestId"])
        is_there = description.get("state") == DescriptionState.BY_MODEL
        yield LoggedDescriberCall(
            describer=description.get("describer", ""),
            file=delivery.get("filename") or name_kind(delivery.get("kind", "")),
            request_id=call["requestId"],
            started_ms=call["startedMs"],
            duration_ms=call["durationMs"],
            prompt_tokens=call.get("promptTokens"),
            completion_tokens=call.get("completionTokens"),
            fault="" if is_there else description.get("fault") or "-",
        )
