"""Record which models refused a kind of file that they can read according to their recorded capabilities.

The request log writer (routing_admin/request_log/entries.py) buffers refusals in memory. The server's periodic upkeep
writes them to the database. If a crash loses a refusal, the model's next one is recorded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction

from capabilities.core.providers.probes.drift import DISMISSAL_PERIOD, DriftKind
from capabilities.models import Drift, ServiceCapability
from capabilities.runtime import owned

log = logging.getLogger(__name__)

UPDATE_INTERVAL = timedelta(minutes=1)
"""Evidence of a refusal is replaced by newer evidence only after this time."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A request in which a model refused a file. `capabilities` are the capabilities that the file may require."""

    provider: str
    model: str
    capabilities: frozenset[str]
    request: str
    status: int | None
    at: datetime


class RefusalBuffer:
    """Refusals that are not yet in the database. Only the latest is kept for each model and set of capabilities."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, frozenset[str]], RefusedFile] = {}
        self._writing = threading.Lock()

    def note(self, refused: RefusedFile) -> None:
        self._noted[refused.provider, refused.model, refused.capabilities] = refused

    def write(self) -> bool:
        """Write the buffered refusals in one transaction. If the database fails, return False and keep the buffer."""
        if not self._noted:
            return True
        with self._writing:
            # Copy the buffer, because requests may add refusals during the write.
            noted = dict(self._noted)
            try:
                with transaction.atomic():
                    for refused in noted.values():
                        _write(refused)
            except (DatabaseError, InterfaceError) as error:
                log.debug("%s refused files could not be written yet: %s", len(noted), error)
                return False
            for key, refused in noted.items():
                # A newer refusal may have been added during the write.
                if self._noted.get(key) is refused:
                    del self._noted[key]
            return True


def _write(refused: RefusedFile) -> None:
    declared = _declared_capabilities(refused.provider, refused.model, refused.capabilities)
    # If the file may have required several capabilities, it is unknown which of them the model lacks.
    if len(declared) != 1:
        return
    cell: dict[str, Any] = {"provider": refused.provider, "model": refused.model, "capability": declared.pop()}
    existing = Drift.objects.filter(**cell, kind=DriftKind.REFUSED).first()
    if existing and (
        refused.at - existing.at < UPDATE_INTERVAL
        or (existing.dismissed_at and refused.at - existing.dismissed_at < DISMISSAL_PERIOD)
    ):
        return
    evidence = {"at": refused.at, "request": refused.request, "status": refused.status}
    Drift.objects.update_or_create(
        defaults={**evidence, "kind": DriftKind.REFUSED, "revision": None, "dismissed_at": None}, **cell
    )


def _declared_capabilities(provider: str, model: str, capabilities: Collection[str]) -> set[str]:
    cells = ServiceCapability.objects.filter(service__provider__name=provider, service__model=model)
    declared = cells.filter(service__declares_capabilities=True, side="input", supported=True, name__in=capabilities)
    return set(declared.values_list("name", flat=True))


refusal_buffer = owned(RefusalBuffer)
