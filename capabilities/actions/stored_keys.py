"""Changing how stored provider keys are encrypted."""

from __future__ import annotations

from capabilities import secrets
from capabilities.acts import Act, Actor
from capabilities.ports import ports


def rotate_stored_keys(actor: Actor) -> int:
    """Encrypts all of them with the newest encryption key, or none; how many there are.

    Raises `KeyUnreadableError` for one that no encryption key opens.
    """
    with ports.ledger.audit(actor, Act("keys.rotate")) as act:
        act.details["keys"] = count = secrets.rotate()
    return count
