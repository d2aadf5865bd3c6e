"""Calls to models that described files for a request's candidates, as the request's page shows them."""

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


LOST_CONTENT: Mapping[str, Text] = {
    "image": gettext_lazy("the image"),
    "audio": gettext_lazy("the audio"),
    "video": gettext_lazy("the video"),
    "document": gettext_lazy("the document"),
    "text": gettext_lazy("the text"),
}
"""Maps each kind of file to its name in sentences about what a model did not receive."""


def name_kind(kind: str) -> str:
    return str(LOST_CONTENT.get(kind, _("the file")))


@dataclass(frozen=True, slots=True)
class LoggedDescriberCall:
    """A call to a model that described a file: model, file, time within the request, and tokens.

    `fault` is set if the call produced no description. `request_id` is the id of the call's own log entry. `entry` is
    this log entry, which contains the cost; it is None until it is loaded.
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
        return insert_facts(_("%(describer)s describes %(file)s"), {"describer": self.describer, "file": self.file})

    @property
    def track(self) -> Track:
        tone = "bad" if self.fault else "info"
        bar = Bar(self.started_ms, self.started_ms + self.duration_ms, tone)
        return Track(self.label, (bar,), is_attempt=False)


def describer_name(delivery: Mapping[str, Any]) -> str:
    """Return the name of the model that described a file for a candidate, or an empty string if none did."""
    description = delivery.get("description") or {}
    return str(description.get("describer", "")) if description.get("state") == DescriptionState.BY_MODEL else ""


def list_describer_calls(row: AttemptLog) -> Iterator[LoggedDescriberCall]:
    """Yield the calls to models that described files before this attempt."""
    seen: set[str] = set()
    for delivery in row.deliveries:
        description: Mapping[str, Any] = delivery.get("description") or {}
        call: Mapping[str, Any] = description.get("call") or {}
        # Several files may use the description from a single call, so yield each call only once.
        if not call or call["requestId"] in seen:
            continue
        seen.add(call["requestId"])
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
