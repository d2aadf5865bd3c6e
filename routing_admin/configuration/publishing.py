"""Writes both JSON files into `ROUTING_ADMIN_PUBLISH_DIR` after every revision, each whole or not at all."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from django.conf import settings

from routing_admin.configuration import exports

log = logging.getLogger(__name__)


def publish() -> None:
    """Both files as `export_config` writes them; a directory that cannot be written is told in the log, no more."""
    if not settings.PUBLISH_DIR:
        return
    directory = Path(settings.PUBLISH_DIR)
    for name in exports.FILES:
        try:
            replace_file(directory / f"{name.value}.json", exports.export(name).text)
        except OSError as problem:
            log.error("ROUTING_ADMIN_PUBLISH_DIR: %s could not be written: %s", name.value, problem.strerror)


def replace_file(path: Path, text: str) -> None:
    """Writes a file beside its place, makes sure it is on the disk, and moves it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    Path(file.name).replace(path)
