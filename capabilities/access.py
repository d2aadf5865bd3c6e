"""Authenticate agents by their keys, and authorise agents and signed-in users.

The table in `core/permissions.py` states what each caller may do.
"""

from __future__ import annotations

import binascii
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from django.db import DatabaseError
from django.http import HttpRequest
from django.utils import timezone

from capabilities.actors import Actor
from capabilities.core.permissions import PagePart, UserRole, call_scope, can_change_near, may_have
from capabilities.core.services.agent_limits import AgentLimits, combine_rights, parse_limits
from capabilities.core.services.agents import NO_LABELS, Labels, parse_terms
from capabilities.core.services.limit_holders import LimitHolder, agent_holder, key_holder, maker_holder
from capabilities.last_use import last_uses
from capabilities.models import Agent, AgentKey
from capabilities.signing import is_signed, newest_secret, secret_name, sign

KEY = re.compile(r"ra_([0-9a-z]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated agent and its key's permissions.

    `key` is the key's public id, and `ends_at` is when the key expires. If an agent acts for another agent that it
    created, `agent` is the created agent, and `acts_through` is the agent that owns the key. `limits` apply to the
    owner and `key_limits` to the key. `rights` contains the models that are allowed by all limits (the key's, its
    owner's, and those of the owner's creators), or is None if all models are allowed. The call counts towards the
    limits of every holder in `holders`.
    """

    agent: str
    key: str
    scopes: frozenset[str]
    acts_through: str = ""
    ends_at: datetime | None = None
    limits: AgentLimits | None = None
    key_limits: AgentLimits | None = None
    rights: AgentLimits | None = None
    holders: tuple[LimitHolder, ...] = ()
    labels: Labels = NO_LABELS

    @property
    def key_owner(self) -> str:
        """Return the agent that owns the key, even if the call acts for another agent."""
        return self.acts_through or self.agent

    def may(self, scope: str) -> bool:
        return scope in self.scopes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a caller was rejected. `scope` is the scope that the key lacks, or empty if there is another reason."""

    status: int
    code: str
    message: str
    scope: str = ""


NO_KEY = Refusal(
    401,
    "key_missing",
    "Send the agent key as 'Authorization: Bearer ra_…', 'x-api-key', 'api-key' or 'x-goog-api-key'.",
)
BAD_KEY = Refusal(
    401, "key_invalid", "This agent key is unknown, revoked or expired. An administrator can issue another."
)
KEY_IN_URL = Refusal(
    400,
    "key_in_url",
    "The agent key is in the URL, where servers along the way log it. Send it as 'Authorization: Bearer ra_…' or "
    "'x-goog-api-key', and ask an administrator to replace this key: treat it as leaked.",
)
NO_ROW = Refusal(403, "forbidden", "No row of the table of permissions names this call, so it is refused.")
NOT_OWN_AGENT = Refusal(403, "agent_forbidden", "x-agent-id is not an agent this key can act for.")


def make_key(kind: str = "ra") -> tuple[str, str, str]:
    """Return a new random key, its public id, and the digest of its secret, which is stored instead of the key."""
    public, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    # With the checksum, secret scanners can tell a leaked key from a similar string without calling this server.
    check = f"{binascii.crc32(f'{public}_{secret}'.encode()):08x}"
    return f"{kind}_{public}_{secret}_{check}", public, hash_secret(secret)


def hash_secret(secret: str) -> str:
    # A secret of 256 random bits needs no slow password hash (docs/decisions/0004).
    return sign(secret.encode())


def read_key(headers: Mapping[str, str]) -> str:
    """Return the key from the first header that contains one, or "" if none does."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    # Anthropic's SDK sends x-api-key, Azure's SDK sends api-key, and Google's SDK sends x-goog-api-key.
    key = headers.get("x-api-key") or headers.get("api-key") or headers.get("x-goog-api-key") or ""
    return key.strip()


def refuse_query(query: str) -> Refusal | None:
    # Proxies may log URLs, so a key in a URL counts as leaked.
    return KEY_IN_URL if KEY.search(unquote(query)) else None


def authenticate(headers: Mapping[str, str]) -> Principal | Refusal:
    """Return the agent whose key is in the headers, or a `Refusal` that states the reason.

    `headers` must be case-insensitive or have lower-case names.
    """
    key = read_key(headers)
    if not key:
        return NO_KEY
    match = KEY.fullmatch(key)
    row = AgentKey.objects.select_related("agent__owner").filter(public_id=match[1]).first() if match else None
    # All invalid keys get the same response. The digest is compared even if there is no row, so that the response time
    # does not reveal which public ids exist.
    if not match or not is_signed(match[2].encode(), row.digest if row else "") or row is None:
        return BAD_KEY
    now = timezone.now()
    principal = _living_principal(row, now)
    if principal is None:
        return BAD_KEY
    last_uses().note(row, now)
    _renew_signature(row, match[2])
    return act_for(principal, headers.get("x-agent-id", "").strip())


def _renew_signature(row: AgentKey, secret: str) -> None:
    # If the signing secret was rotated, sign the key again with the new one, so that the old one can be removed. This
    # is possible only during a call, because the database has no copy of the key's secret.
    name = secret_name(newest_secret())
    if row.signed_with != name:
        with suppress(DatabaseError):  # If the update fails, the next call tries again.
            rows = AgentKey.objects.filter(pk=row.pk, digest=row.digest)
            rows.update(digest=hash_secret(secret), signed_with=name)


def find_principal(public_id: str, agent_id: str) -> Principal | None:
    """Return the principal for a previously authenticated key, or None if the key is no longer valid."""
    row = AgentKey.objects.select_related("agent__owner").filter(public_id=public_id).first()
    principal = _living_principal(row, timezone.now()) if row else None
    acting = act_for(principal, agent_id) if principal else None
    return acting if isinstance(acting, Principal) else None


def _living_principal(row: AgentKey, now: datetime) -> Principal | None:
    # Return None if the key is revoked, or if the key, its agent or one of the agent's creators has expired. The limits
    # of an agent's creators apply to the agent, too.
    makers = list_creators(row.agent)
    ends = (row.expires_at, row.agent.expires_at, *(maker.expires_at for maker in makers))
    ends_at = min((end for end in ends if end), default=None)
    if row.revoked_at or (ends_at is not None and ends_at <= now):
        return None
    agent_id, limits, terms = row.agent.agent_id, parse_limits(row.agent.limits), parse_terms(row.terms)
    makers_limits = {maker.agent_id: parse_limits(maker.limits) for maker in makers}
    holders = (
        agent_holder(agent_id, limits),
        key_holder(row.public_id, terms.limits),
        *(maker_holder(name, maker_limits) for name, maker_limits in makers_limits.items()),
    )
    return Principal(
        agent_id,
        row.public_id,
        frozenset(row.scopes),
        ends_at=ends_at,
        limits=limits,
        key_limits=terms.limits,
        rights=combine_rights(limits, terms.limits, *makers_limits.values()),
        holders=tuple(holder for holder in holders if holder is not None),
        labels=terms.labels,
    )


def list_creators(agent: Agent) -> list[Agent]:
    """Return the agent that created this agent at run time, then that agent's creator, and so on."""
    makers = []
    while (maker := agent.owner) is not None:
        makers.append(maker)
        agent = maker
    return makers


def act_for(principal: Principal, agent_id: str) -> Principal | Refusal:
    """Return the principal acting as `agent_id`: itself, or an agent that it created (scope `agents:write`)."""
    if not agent_id or agent_id == principal.agent:
        return principal
    own_agents = Agent.objects.filter(agent_id=agent_id, owner__agent_id=principal.agent)
    # The refusal is the same for unknown agents and other owners' agents, so it does not reveal which agents exist.
    if not principal.may("agents:write") or not filter_living(own_agents).exists():
        return NOT_OWN_AGENT
    return replace(principal, agent=agent_id, acts_through=principal.agent)


def refuse_call(principal: Principal, method: str, path: str) -> Refusal | None:
    """Return why the key may not make the call, or None if it may. `path` is written as in the permission table."""
    scope = call_scope(method, path)
    if scope is None:
        return NO_ROW
    message = f"This key does not have the scope {scope}. An administrator can issue one that has it."
    return None if principal.may(scope) else Refusal(403, "scope_missing", message, scope)


def filter_living(agents: Any) -> Any:
    return agents.exclude(expires_at__lte=timezone.now())


def request_principal(request: HttpRequest) -> Principal:
    principal: Principal = request.auth  # type: ignore[attr-defined]
    return principal


def role_for(user: Any) -> UserRole:
    if not user.is_authenticated:
        return UserRole.ANONYMOUS
    if user.is_staff:
        return UserRole.ADMINISTRATOR
    person = getattr(user, "person", None)
    return UserRole.EDITOR if person is not None and person.is_editor else UserRole.VIEWER


def can_edit(request: HttpRequest) -> bool:
    """Return whether the user may change anything on this page or on other pages under the same subject in `PAGES`."""
    match = request.resolver_match
    return match is not None and can_change_near(role_for(request.user), match.view_name)


def may(user: Any, part: PagePart) -> bool:
    return may_have(role_for(user), part)


def request_actor(request: HttpRequest) -> Actor:
    return Actor(
        "person", request.user.get_username(), request.META.get("REMOTE_ADDR", ""), getattr(request, "request_id", "")
    )
