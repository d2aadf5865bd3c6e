"""Actors and actions, as recorded in the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """The user, agent, command or system process that acts, and the IP address of its request."""

    kind: str
    name: str
    address: str = ""
    request_id: str = ""


SYSTEM = Actor("system", "routing_admin")


@dataclass(slots=True)
class AuditedAction:
    """An audit log entry. `details` may be filled in while the action runs, and must never contain a secret."""

    action: str
    object_kind: str = ""
    object_name: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    revision: int | None = None
    """Number of the configuration revision that the action created, or None if it changed nothing. If changes are
    nested, it is set when the outermost one ends."""
