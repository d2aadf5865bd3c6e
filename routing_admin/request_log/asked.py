"""What a request asked for, as the log knows it: a task route, a model service, a provider's model, or a wrong name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from routing_admin.core.planning.model_names import AUTO, TASK
from routing_admin.models import RequestLog

KINDS: Mapping[str, str | Promise] = {
    "route": pgettext_lazy("asked for", "route"),
    "service": pgettext_lazy("asked for", "service"),
    "model": pgettext_lazy("asked for", "model"),
    "nothing": pgettext_lazy("asked for", "unknown name"),
    "": "",
}


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The name as it was asked for, its kind, and the route that it led to where that is called otherwise."""

    name: str
    kind: str
    route: str = ""

    @property
    def label(self) -> str:
        """The kind in the reader's language."""
        return str(KINDS[self.kind])


def asked_for(row: RequestLog) -> AskedFor:
    """What stands first in a row of the list; the id where the request ended before it said anything."""
    name = row.asked_model.removeprefix(TASK)
    if row.task_type:
        other = row.task_type if name not in ("", AUTO, row.task_type) else ""
        return AskedFor(name if other else row.task_type, "route", other)
    if not name:
        return AskedFor(row.pk, "")
    if not row.chain:
        return AskedFor(name, "nothing" if row.outcome == "model_not_found" else "")
    return AskedFor(name, "model" if "/" in name else "service")
