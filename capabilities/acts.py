"""Values for the audit log: who acts, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """A user, an agent, a command or the system, and the IP address that it acted from."""

    kind: str
    name: str
    address: str = ""
    request_id: str = ""


SYSTEM = Actor("system", "routing_admin")


@dataclass(slots=True)
class AuditedAction:
    """An entry of the audit log. `details` may be filled while the action runs and must never contain a secret."""

    action: str
    object_kind: str = ""
    object_name: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    revision: int | None = None
    """The number of the revision that the action created, or None if the configuration is unchanged. It is known once
    the outermost change has been committed."""
