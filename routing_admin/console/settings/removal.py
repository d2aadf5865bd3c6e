"""What removing the demo takes away and degrades, as the pages that offer it say it beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.consequence import Consequence
from routing_admin.console.demo.load import preview_removal

LABELS: Mapping[str, str | Promise] = {
    "provider": gettext_lazy("Providers"),
    "service": gettext_lazy("Model services"),
    "route": gettext_lazy("Task routes"),
    "alias": gettext_lazy("Aliases"),
    "agent": gettext_lazy("Agents"),
    "language": gettext_lazy("Languages"),
}


@dataclass(frozen=True, slots=True)
class RemovalView:
    """The names that go under the label of their kind, and what that means for those who stay."""

    lists: Sequence[tuple[str | Promise, tuple[str, ...]]]
    effects: tuple[Consequence, ...]


def describe_removal() -> RemovalView:
    """What removing the demo would do now."""
    preview = preview_removal()
    return RemovalView([(LABELS[kind], names) for kind, names in preview.names.items()], preview.effects)
