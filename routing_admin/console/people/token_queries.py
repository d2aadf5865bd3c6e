"""What does the page of tokens need to know? All of them, whose each is."""

from __future__ import annotations

from django.utils import timezone

from capabilities.signing import name_of_secret, newest_secret
from routing_admin.models import AdminToken
from routing_admin.platform.auth.admin_tokens import name_of


def list_tokens() -> list[AdminToken]:
    """Every token with its owner: those that work first, the revoked ones last."""
    rows = AdminToken.objects.select_related("owner")
    return sorted(rows, key=lambda row: row.revoked_at is not None)


def find_token(public_id: str) -> AdminToken | None:
    """The token with that public part; None for none."""
    return AdminToken.objects.select_related("owner").filter(public_id=public_id).first()


def tokens_behind() -> list[str]:
    """Living tokens that still need an older signing secret: they did not come in since the rotation."""
    living = AdminToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now()).select_related("owner")
    behind = living.exclude(signed_with=name_of_secret(newest_secret()))
    return sorted(name_of(row.owner.get_username(), row.name) for row in behind)
