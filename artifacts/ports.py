"""Functions of `routing_admin` that the artifact library calls: the audit log and the retention settings.

Both are set in `AppConfig.ready`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from capabilities.actors import Actor, AuditedAction


@dataclass(frozen=True, slots=True)
class Retention:
    """Quotas in bytes, and the number of days after which an artifact expires. None means unlimited.

    `agent_quota_bytes` is the quota of each agent.
    """

    quota_bytes: int | None = None
    days: int | None = None
    agent_quota_bytes: int | None = None


class _Ports:
    audit: Callable[[Actor, AuditedAction], AbstractContextManager[AuditedAction]]
    """Function that opens a transaction for an action, and writes the action's audit event at the end."""
    retention: Callable[[], Retention]


ports = _Ports()
