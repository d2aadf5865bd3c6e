"""What does the page of tokens need to know? All of them, whose each is."""

from __future__ import annotations

from routing_admin.models import AdminToken


def list_tokens() -> list[AdminToken]:
    """Every token with its owner: those that work first, the revoked ones last."""
    rows = AdminToken.objects.select_related("owner")
    return sorted(rows, key=lambda row: row.revoked_at is not None)


def find_token(public_id: str) -> AdminToken | None:
    """The token with that public part; None for none."""
    return AdminToken.objects.select_related("owner").filter(public_id=public_id).first()
