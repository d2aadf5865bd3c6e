"""Share metrics between the processes of one server, so that each of them can answer a scrape for all of them.

Each process locks a slot while it runs, and writes its metrics to the slot's file. `serve` creates the folder of these
files, in memory if possible, and removes it at the end. When a process ends, its counts remain in the sum, and the next
process in the slot continues them; its gauges are dropped. The process that answers a scrape reports its own metrics as
it last wrote them. Otherwise a count could be lower in the next scrape, which Prometheus would interpret as a restart.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from capabilities.runtime import owned
from routing_admin.platform.server.file_locks import try_lock
from routing_admin.platform.server.hooks import Sources, server_hooks
from routing_admin.platform.server.metrics import MetricFamily, read_sources, sum_families
from routing_admin.platform.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

FOLDER_VARIABLE = "_ROUTING_ADMIN_WORKER_BOARD"
"""Environment variable that passes the folder's path to the processes that `serve` starts."""
PREFIX = "routing-admin-workers-"
PUBLISH_SECONDS = 1.0
"""Maximum age of other processes' metrics in seconds. A killed process loses at most this many seconds of counts."""
MAX_CPU_SHARE = 0.01


class WorkerBoard:
    """The slot of this process, and the metrics of all slots. Without a folder, this process is the whole server."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources
        self._folder: Path | None = None
        self._slot, self._handle = 0, -1
        self._past: list[MetricFamily] = []
        self._publishing = threading.Lock()
        self._thread = RepeatingThread("worker-board", PUBLISH_SECONDS, self._publish_when_due, lambda: None)
        self._due = 0.0

    def start(self, folder: str | None = None) -> None:
        """Take a slot in the folder, by default the server's folder, and publish this process's metrics from now on."""
        if not (name := folder or os.environ.get(FOLDER_VARIABLE)):
            return
        try:
            self._take_slot(Path(name))
        except OSError as error:
            log.error("/metrics will tell of one process alone: %s", error)
        else:
            self._thread.start()

    def stop(self) -> None:
        """Publish the last counts and release the slot."""
        self._thread.stop()
        if self._folder is not None:
            with suppress(OSError):
                self.publish()
            os.close(self._handle)
            self._folder = None

    def publish(self) -> None:
        """Write this process's metrics to its file; if this raises `OSError`, the previous metrics remain there."""
        if self._folder is None:
            return
        with self._publishing:
            families = sum_families(self._read_own(), self._past)
            path = self._folder / f"{self._slot}.json"
            new = path.with_suffix(".new")
            new.write_text(json.dumps([os.getpid(), [_to_json(family) for family in families]]))
            # Replace the file as a whole, so that no process reads a partial file.
            new.replace(path)

    def collect(self) -> tuple[list[MetricFamily], dict[str, int]]:
        """Return the server's combined metrics, and the ids of its running processes by slot."""
        with suppress(OSError):
            self.publish()
        slots = _read_slots(self._folder) if self._folder is not None else {}
        pids = {str(slot): pid for slot, (pid, _) in slots.items() if pid is not None}
        if not pids:
            return sum_families(self._read_own()), {"0": os.getpid()}
        return sum_families(*(families for _, families in slots.values())), pids

    def _read_own(self) -> Iterable[MetricFamily]:
        return read_sources(server_hooks().process_families if self._sources is None else self._sources)

    def _publish_when_due(self) -> None:
        if time.monotonic() >= self._due:
            began = time.thread_time()
            self.publish()
            # Publishing may use at most a hundredth of a core. With 1,500 models it takes 48 ms, so it then happens
            # less often.
            self._due = time.monotonic() + (time.thread_time() - began) / MAX_CPU_SHARE - PUBLISH_SECONDS

    def _take_slot(self, folder: Path) -> None:
        while True:
            handle = os.open(folder / f"{self._slot}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            if try_lock(handle):
                break
            os.close(handle)
            self._slot += 1
        self._past = [family for family in _read(folder / f"{self._slot}.json")[1] if family.outlives_process]
        self._folder, self._handle = folder, handle
        # Overwrite the file of the slot's previous process, which removes its gauges.
        self.publish()


board = owned(WorkerBoard)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Create a folder for the processes of one server, in memory if possible, and remove it at the end.

    Folders that killed servers left behind are removed first, if all of their processes have ended.
    """
    memory = Path("/dev/shm")  # noqa: S108  # a disk may be full when metrics matter; only this user can read the folder
    root = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    for left in root.glob(f"{PREFIX}*"):
        if not any(_is_held(lock) for lock in left.glob("*.lock")):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(dir=root))
    handle = os.open(made / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try_lock(handle)
    # Rename the folder only after locking it, because other servers remove folders with this prefix that are not
    # locked.
    folder = made.rename(root / f"{PREFIX}{made.name}")
    os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop(FOLDER_VARIABLE, None)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _read_slots(folder: Path) -> dict[int, tuple[int | None, list[MetricFamily]]]:
    found: dict[int, tuple[int | None, list[MetricFamily]]] = {}
    for path in folder.glob("*.json"):
        is_alive = _is_held(path.with_suffix(".lock"))
        pid, families = _read(path)
        remaining = families if is_alive else [family for family in families if family.outlives_process]
        found[int(path.stem)] = (pid if is_alive else None, remaining)
    return dict(sorted(found.items()))


def _read(path: Path) -> tuple[int, list[MetricFamily]]:
    try:
        pid, families = json.loads(path.read_text())
    except FileNotFoundError:
        return 0, []
    return pid, [_from_json(family) for family in families]


def _to_json(family: MetricFamily) -> dict[str, Any]:
    stored = {field.name: getattr(family, field.name) for field in fields(family)}
    return stored | {"values": list(family.values.items())}


def _from_json(stored: dict[str, Any]) -> MetricFamily:
    values = {tuple(labels): value for labels, value in stored["values"]}
    return MetricFamily(
        **stored | {"values": values, "labels": tuple(stored["labels"]), "buckets": tuple(stored["buckets"])}
    )


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)
