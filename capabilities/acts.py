"""Values for the audit log: actors and actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """A user, an agent, a command or the system, with the IP address of the request."""

    kind: str
    name: str
    address: str = ""
    request_id: str = ""


SYSTEM = Actor("system", "routing_admin")


@dataclass(slots=True)
class AuditedAction:
    """An audit log entry. `details` may be filled while the action runs and must never contain a secret."""

    action: str
    object_kind: str = ""
    object_name: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    revision: int | None = None
    """Number of the revision that the action created, or None if the configuration is unchanged. It is set after the
    outermost change is committed."""
