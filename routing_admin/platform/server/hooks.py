"""Metrics and checks contributed by higher packages; `routing_admin.wiring` fills it when Django is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routing_admin.platform.server.metrics import MetricFamily
    from routing_admin.platform.server.readiness import DependencyCheck

Sources = list[Callable[[], "Iterable[MetricFamily]"]]


@dataclass(slots=True)
class Hooks:
    """Sources of metrics, and readiness checks.

    `families` describe the whole installation and are read at each scrape. `process_families` describe this process and
    are published every second, so they must not query a database. `filters` remove series of what is no longer
    configured.
    """

    families: Sources = field(default_factory=list)
    process_families: Sources = field(default_factory=list)
    filters: list[Callable[[MetricFamily], MetricFamily]] = field(default_factory=list)
    checks: list[DependencyCheck] = field(default_factory=list)
    has_configuration: Callable[[], bool] = lambda: True


hooks = Hooks()
