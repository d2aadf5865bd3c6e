"""What the library of artifacts needs from above: the audit log, and how much is kept.

`routing_admin` fills both when Django is ready.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from capabilities.acts import Actor, AuditedAction


@dataclass(frozen=True, slots=True)
class Retention:
    """How much the installation keeps: bytes of artifacts, and days after which one expires; None without end.

    `agent_quota_bytes` is how much of it one agent may store.
    """

    quota_bytes: int | None = None
    days: int | None = None
    agent_quota_bytes: int | None = None


class _Ports:
    audit: Callable[[Actor, AuditedAction], AbstractContextManager[AuditedAction]]
    """A transaction whose end records the audit event."""
    retention: Callable[[], Retention]


ports = _Ports()
