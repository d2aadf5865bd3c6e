"""Finds the server programs that tests start."""

from __future__ import annotations

import os
import shutil


def find_program(*names: str) -> str | None:
    """Return the path of the first program found. Also look in /usr/sbin, where Debian keeps some for root only."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)
