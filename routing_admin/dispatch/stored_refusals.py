"""Store which parameters models have refused, so that all processes know them even after a restart.

Requests never wait for this. A refusal is deleted once no configured route or service uses its model, or when the
provider's URL changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.refusals import model_addresses, read_refusals, write_refusals
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.fallback.memory import ModelKey, RefusalMemory, Refused
from routing_admin.dispatch.send import process_run_context

READ_SECONDS = 5.0
"""Seconds between two reads of the refusals that other processes have added or cleared."""


@dataclass(slots=True)
class StoredRefusals:
    """Keeps this process's `RefusalMemory` and the database rows in step; `look` is called periodically."""

    find_memory: Callable[[], RefusalMemory] = lambda: process_run_context().memory
    clock: Callable[[], float] = time.monotonic
    _addresses: Mapping[ModelKey, str] = field(default_factory=dict)
    _stored: dict[ModelKey, Refused] = field(default_factory=dict)
    _changed: set[ModelKey] = field(default_factory=set)
    _state: Snapshot | None = None
    _read_due: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> RefusalMemory:
        memory = self.find_memory()
        memory.watcher = self._changed.add
        return memory

    def look(self) -> None:
        """Write new refusals to the database, and read those of other processes.

        If the database fails, the next call writes the changes.
        """
        memory, state = self.begin(), snapshot.current()
        with self._lock:
            if state is not self._state:
                addresses = model_addresses(state.configuration)
                for place, address in self._addresses.items():
                    if addresses.get(place) != address:
                        memory.forget(*place)
                self._state, self._addresses, self._read_due = state, addresses, float("-inf")
            self._write(memory)
            if self.clock() >= self._read_due:
                self._read(memory)
                self._read_due = self.clock() + READ_SECONDS

    def _write(self, memory: RefusalMemory) -> None:
        for place in tuple(self._changed):
            # Clear the flag before reading the memory, so that a change during the read sets it again.
            self._changed.discard(place)
            if place not in self._addresses and place not in self._stored:
                continue
            current = memory.lasting(*place)
            try:
                write_refusals(place, self._addresses.get(place, ""), self._stored.get(place, {}), current)
            except BaseException:
                self._changed.add(place)
                raise
            self._stored[place] = current

    def _read(self, memory: RefusalMemory) -> None:
        stored = read_refusals(self._addresses)
        for place in stored.keys() | self._stored.keys():
            # A change that this process has not written yet is newer than the rows.
            if place not in self._changed and stored.get(place, {}) != memory.lasting(*place):
                memory.take_over(*place, stored.get(place, {}))
        self._stored = stored


stored_refusals = owned(StoredRefusals)


@dataclass(frozen=True, slots=True)
class RefusedParameter:
    """A parameter that a model refused; it is sent as `sent_as`, or omitted if that is None.

    If `until` is None, this is permanent.
    """

    name: str
    sent_as: str | None
    until: datetime | None = None


def list_refusals(provider: str, model: str) -> list[RefusedParameter]:
    """Return the parameters that this process currently renames or omits for a model."""
    run_context, now = process_run_context(), timezone.now()
    return [
        RefusedParameter(
            refusal.param,
            refusal.sent_as,
            None if refusal.until is None else now + timedelta(seconds=refusal.until - run_context.clock()),
        )
        for refusal in run_context.memory.refusals(provider, model)
    ]


def forget_refusal(provider: str, model: str, name: str) -> None:
    """Send this parameter to the model again, in all processes. Database errors propagate."""
    stored_refusals().look()  # First read the rows, so that refusals stored by other processes are also deleted.
    process_run_context().memory.forget(provider, model, name)
    stored_refusals().look()
