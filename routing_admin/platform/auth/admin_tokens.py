"""Authenticate administrators' scripts by tokens, which are looked up by their public part, like agent keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from django.utils import timezone

from capabilities.access import Refusal, read_key
from capabilities.core.permissions import admin_call_scope
from capabilities.signing import is_signed
from routing_admin.models import AdminToken

KIND = "rat"
TOKEN = re.compile(r"rat_([0-9a-f]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")
MAX_OWNER = 75
"""In the audit log, a token's name starts with its owner's user name, cut to this many characters."""

NO_TOKEN = Refusal(
    401,
    "token_missing",
    "Send an administrator's token as 'Authorization: Bearer rat_…'. Agents' keys do not open this.",
)
BAD_TOKEN = Refusal(
    401, "token_invalid", "This token is unknown, revoked or expired, or its owner is no longer an administrator."
)
TOKEN_IN_ADDRESS = Refusal(
    400,
    "token_in_url",
    "The token is in the URL, where servers along the way log it. Send it as 'Authorization: Bearer rat_…', and "
    "revoke this one: treat it as leaked.",
)


@dataclass(frozen=True, slots=True)
class AdminCaller:
    """A script that a token has authenticated; `name` is the script's name in the audit log."""

    row: AdminToken
    secret: str = field(repr=False)
    name: str
    scopes: frozenset[str]


def token_name(owner: str, token: str) -> str:
    return f"{owner[:MAX_OWNER]}'s token {token}"


def authenticate_token(headers: Mapping[str, str]) -> AdminCaller | Refusal:
    token = read_key(headers)
    if not token.startswith(f"{KIND}_"):
        return NO_TOKEN
    match = TOKEN.fullmatch(token)
    row = AdminToken.objects.select_related("owner").filter(public_id=match[1]).first() if match else None
    if not match or not is_signed(match[2].encode(), row.digest if row else "") or row is None:
        # Every kind of invalid token gets the same response, so that an attacker learns nothing.
        return BAD_TOKEN
    living = row.revoked_at is None and row.expires_at > timezone.now()
    if not (living and row.owner.is_active and row.owner.is_staff):
        return BAD_TOKEN
    return AdminCaller(row, match[2], token_name(row.owner.get_username(), row.name), frozenset(row.scopes))


def refuse_token_in(query: str) -> Refusal | None:
    return TOKEN_IN_ADDRESS if TOKEN.search(unquote(query)) else None


def refuse_admin_call(caller: AdminCaller, method: str, path: str) -> Refusal | None:
    """Return a refusal if this script may not make the call; `path` is the path in the permission table."""
    scope = admin_call_scope(method, path)
    if scope is None:
        return Refusal(403, "forbidden", "No row of the table of permissions names this call, so it is refused.")
    message = f"This token does not have the scope {scope}. Its owner can make one that has it."
    return None if scope in caller.scopes else Refusal(403, "scope_missing", message, scope)
