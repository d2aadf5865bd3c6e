"""Metrics and readiness checks that higher packages contribute to the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from routing_admin.platform.server.health_checks import DependencyCheck
    from routing_admin.platform.server.metrics import MetricFamily

Sources = Sequence[Callable[[], "Iterable[MetricFamily]"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Metrics and readiness checks that higher packages contribute.

    `families` describe the whole installation and are read at each scrape. `process_families` describe this process and
    are published every second, so they must not query a database. `filters` remove the time series of objects that are
    no longer configured.
    """

    families: Sources
    process_families: Sources
    filters: Sequence[Callable[[MetricFamily], MetricFamily]]
    checks: Sequence[DependencyCheck]
    has_configuration: Callable[[], bool]


@cache
def server_hooks() -> Hooks:
    """Return the hooks that `settings.SERVER_HOOKS` names.

    The hooks are loaded at first use, because they import most of the program, and management commands do not need
    them.
    """
    hooks: Hooks = import_string(settings.SERVER_HOOKS)()
    return hooks
