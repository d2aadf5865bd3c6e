"""How much room is left for what this installation writes?"""

from __future__ import annotations

import shutil

from django.conf import settings

LOW_BYTES = 256 * 1024 * 1024
"""Below this the dashboard tells of it."""


def low_disk_space() -> int | None:
    """Bytes that are free on the disk of the data directory, when they are few; None otherwise."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    return free if free < LOW_BYTES else None
