"""Opinions from outside the core on what a file is: asked for what we cannot tell ourselves, never proof."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

Opinion = Callable[[bytes], str | None]
"""`ask(head)`: a MIME type (libmagic) or an encoding (charset-normalizer), None when it knows none; see sniffer.py."""


def opinion_of(ask: Opinion | None, head: bytes) -> str | None:
    """What is said of these bytes; None where asking fails, which costs nothing that we found ourselves.

    What a library is known to raise for a hostile file is an answer in its own module; the rest is logged as a fault.
    """
    try:
        return ask(head) if ask else None
    except Exception:  # a library may raise anything, and no file's upload ends for it (ABR-8.3)
        log.exception("asking an opinion on a file failed; %d bytes were looked at", len(head))
        return None
