"""How large may a request's body be? One table by address; the server counts by it, and every call reads by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """One row: addresses, and the bytes of a body there: so many of the largest uploads, but no fewer than `least`.

    `around` is what a form may take around its files. `margin` is for calls that read their body themselves: the
    server lets so many bytes more through, so that a call can refuse in its own words. `in_memory` says that such a
    call holds all of it while it is answered.
    """

    addresses: re.Pattern[str]
    uploads: int = 0
    least: int = 0
    around: int = 0
    margin: int = 0
    in_memory: bool = False

    def size(self) -> int:
        """Bytes that a body may have."""
        return max(self.least, self.uploads * upload_limit()) + self.around


def upload_limit() -> int:
    """Bytes that one uploaded file may have (`ROUTING_ADMIN_MAX_UPLOAD_BYTES`)."""
    return int(settings.MAX_UPLOAD_BYTES)


LIMITS = (
    BodyLimit(re.compile(r"/(api/v1/artifacts|v1/files)/?"), uploads=1, around=MIB),
    BodyLimit(re.compile(r"/api/v1/uploads/[^/]+/?"), uploads=1, margin=MIB),
    BodyLimit(re.compile(r"/api/v1(/.*)?", re.S), least=32 * MIB, margin=MIB, in_memory=True),
    BodyLimit(re.compile(r"/(v1|v1beta|mcp)(/.*)?", re.S), uploads=3, least=64 * MIB, margin=MIB, in_memory=True),
    BodyLimit(re.compile(r".*", re.S), uploads=10, around=MIB),
)
"""The first row that fits counts: one file, in a form or bare; a call of the agents' API; a call of the data plane,
with room for two of the largest uploads as base64; a page, with ten files at once."""


def body_limit(path: str) -> int:
    """Bytes that a body sent to that address may have."""
    return _row(path).size()


def received_limit(path: str) -> int:
    """Bytes of it that the server receives at most."""
    row = _row(path)
    return row.size() + row.margin


def is_held(path: str) -> bool:
    """Whether a body sent to that address is held in memory."""
    return _row(path).in_memory


@lru_cache(maxsize=256)
def _row(path: str) -> BodyLimit:
    return next(row for row in LIMITS if row.addresses.fullmatch(path))
