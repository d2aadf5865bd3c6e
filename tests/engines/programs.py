"""Find the server programs that tests start."""

from __future__ import annotations

import os
import shutil


def find_program(*names: str) -> str | None:
    """Return the path of the first program found. Also search /usr/sbin, where Debian installs some programs."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)
