"""LlmServiceRegistry: the model services and their capabilities (MCR-1, MCR-5, MCR-6).

Queries never raise an exception. If a service or direction is unknown, they return False or None and log a warning
(MCR-E3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from capabilities.core.problems import Problem
from capabilities.core.services.entries import (
    NOT_NEEDED,
    LlmServiceConfig,
    duplicate_ids,
    parse_capabilities,
    parse_service,
    type_name,
)
from capabilities.core.texts.phrases import escape_name
from capabilities.core.vocabulary import STANDARD_CAPABILITIES, Capabilities, Direction

__all__ = [
    "NOT_NEEDED",
    "LlmServiceConfig",
    "LlmServiceRegistry",
    "document_path",
    "parse_capabilities",
    "parse_direction",
    "parse_service",
]

log = logging.getLogger(__name__)


class LlmServiceRegistry:
    """The model services of one configuration, in order. If two have the same id, the first is used.

    `problems` are the problems in the source document.
    """

    def __init__(self, services: Iterable[LlmServiceConfig] = (), problems: Iterable[Problem] = ()) -> None:
        self._services: dict[str, LlmServiceConfig] = {}
        for service in services:
            self._services.setdefault(service.id, service)
        self.problems = tuple(problems)

    @classmethod
    def from_document(cls, data: object) -> LlmServiceRegistry:
        """Return the registry for a parsed `llmservices.json`, excluding invalid services.

        All problems are logged, and are available as `problems`.
        """
        services, problems = _read(data)
        for problem in problems:
            log.warning("llmservices: %s", problem.message)
        for service in services:
            _log_custom_types(service)
        return cls(services, problems)

    def get(self, service_id: str) -> LlmServiceConfig | None:
        return self._services.get(service_id)

    def has_capability(
        self, service_id: str, capability_type: str, direction: Direction | str = Direction.INPUT
    ) -> bool:
        """Return whether the service has the capability. `both` means input and output (MCR-6.1)."""
        capabilities, side = self.get_capabilities(service_id), parse_direction(direction)
        return capabilities is not None and side is not None and capabilities.has(capability_type, side)

    def get_capabilities(self, service_id: str) -> Capabilities | None:
        """Return the service's configured capabilities, or None for an unknown id (MCR-6.2)."""
        service = self.get(service_id) if isinstance(service_id, str) else None
        if service is None:
            log.warning("no model service has the id %r", escape_name(str(service_id)))
        return service.capabilities if service else None

    def get_services_by_capability(
        self, capability_type: str, direction: Direction | str = Direction.INPUT
    ) -> tuple[LlmServiceConfig, ...]:
        side = parse_direction(direction)
        return tuple(service for service in self if side and service.capabilities.has(capability_type, side))

    def __iter__(self) -> Iterator[LlmServiceConfig]:
        return iter(self._services.values())

    def __len__(self) -> int:
        return len(self._services)

    def __contains__(self, service_id: object) -> bool:
        return service_id in self._services


def parse_direction(name: Direction | str) -> Direction | None:
    """Return the direction with this name. If there is none, log a warning and return None."""
    try:
        return Direction(name)
    except ValueError:
        log.warning("%r is no direction; use input, output or both", escape_name(str(name)))
        return None


def document_path(path: Path) -> Path:
    """Return the path of the file to read: the `.local.json` file beside `path` if there is one, else `path` itself."""
    local = path.with_name(f"{path.stem}.local{path.suffix}")
    return local if local.is_file() else path


def _read(data: object) -> tuple[list[LlmServiceConfig], list[Problem]]:
    if not isinstance(data, Mapping):
        return [], [Problem("", f"the file must hold an object with the list services, not {type_name(data)}", "type")]
    if "services" not in data:
        return [], [Problem("services", "services is missing; give a list of model services", "required")]
    entries = data["services"]
    if not isinstance(entries, list | tuple):
        return [], [Problem("services", f"services must be a list, not {type_name(entries)}", "type")]
    parsed = [(f"services[{index}]", entry) for index, entry in enumerate(entries)]
    outcomes = [(path, *parse_service(entry, path)) for path, entry in parsed]
    services = [(path, service) for path, service, _ in outcomes if service is not None]
    problems = [problem for _, _, reported in outcomes for problem in reported] + duplicate_ids(services)
    return [service for _, service in services], problems


def _log_custom_types(service: LlmServiceConfig) -> None:
    for capability in dict.fromkeys(service.capabilities.input + service.capabilities.output):
        if capability not in STANDARD_CAPABILITIES:
            log.debug("model service %r has the custom capability %r", escape_name(service.id), escape_name(capability))
