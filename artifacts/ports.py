"""Functions that the artifact library needs from `routing_admin`: the audit log and retention.

Both are set in `AppConfig.ready`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from capabilities.acts import Actor, AuditedAction


@dataclass(frozen=True, slots=True)
class Retention:
    """Quotas in bytes, and the number of days until an artifact expires. None means no limit.

    `agent_quota_bytes` is the quota of each agent.
    """

    quota_bytes: int | None = None
    days: int | None = None
    agent_quota_bytes: int | None = None


class _Ports:
    audit: Callable[[Actor, AuditedAction], AbstractContextManager[AuditedAction]]
    """Function that opens a transaction and writes the audit event when it ends."""
    retention: Callable[[], Retention]


ports = _Ports()
