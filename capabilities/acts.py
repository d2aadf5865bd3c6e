"""Who acts, and an act as the audit log keeps it: values that every action takes and returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person, an agent, a command, or the system itself; and from where."""

    kind: str
    name: str
    address: str = ""
    request_id: str = ""


SYSTEM = Actor("system", "routing_admin")


@dataclass(slots=True)
class AuditedAction:
    """One act as the audit log tells it; `details` may be filled while it happens, never with a secret."""

    action: str
    object_kind: str = ""
    object_name: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    revision: int | None = None
    """Number of the revision the act made, None when the configuration stayed the same. It is known once the outermost
    change is over, whose revision it is."""
