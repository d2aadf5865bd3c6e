"""Where the servers are that tests start."""

from __future__ import annotations

import os
import shutil


def find_program(*names: str) -> str | None:
    """The path of the first of these programs that is here; Debian keeps some where only root's own PATH looks."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)
