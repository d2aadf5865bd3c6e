"""The permission table: each role's rights on each page, and the scope that each API call needs.

Pages are listed by URL name, calls by method and path. Everything that is not listed is refused, so each new page or
call needs a row. A new role needs a member in `UserRole` and a column in each row. A test compares the table with the
URLconf.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Flag, StrEnum, auto
from functools import cache


class UserRole(StrEnum):
    """User roles, in the column order of the permission table."""

    ANONYMOUS = "anonymous"
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMINISTRATOR = "administrator"


class Right(Flag):
    """What a role may do on a page.

    With `TRY`, it may submit forms that store nothing, for example to preview a draft.
    """

    NOTHING = 0
    SEE = auto()
    TRY = auto()
    CHANGE = auto()


class PagePart(StrEnum):
    """Parts of pages that are hidden from some users who may view the page."""

    RECORDED_BODIES = "recorded_bodies"
    ARTIFACT_BYTES = "artifact_bytes"
    EXPORTS = "exports"
    REAL_REQUESTS = "real_requests"


Cells = tuple[Right, Right, Right, Right]
NOTHING, SEE, TRY, CHANGE = Right.NOTHING, Right.SEE, Right.TRY, Right.CHANGE
BOTH, DRAFT = SEE | CHANGE, SEE | TRY

# The columns are: anonymous, viewer, editor, administrator.

PAGE_PARTS: Mapping[PagePart, Cells] = {
    PagePart.RECORDED_BODIES: (NOTHING, NOTHING, SEE, SEE),  # What agents send, if a setting enables its recording
    PagePart.ARTIFACT_BYTES: (NOTHING, NOTHING, SEE, SEE),  # The file, its text, its thumbnail, and attaching the file
    PagePart.EXPORTS: (NOTHING, NOTHING, SEE, SEE),  # Both configuration files, for any purpose
    PagePart.REAL_REQUESTS: (NOTHING, NOTHING, CHANGE, CHANGE),  # Requests to providers, which may cost money
}

READINGS: Mapping[PagePart, str] = {
    PagePart.RECORDED_BODIES: "request.read",
    PagePart.ARTIFACT_BYTES: "artifact.read",
    PagePart.EXPORTS: "configuration.export",
}
"""Maps parts of pages to the audit log actions that record their views. Views of thumbnails are not recorded."""

PAGES: Mapping[str, Mapping[str, Cells]] = {
    "oneself": {
        "login": (BOTH, BOTH, BOTH, BOTH),
        "sign_in_with": (CHANGE, CHANGE, CHANGE, CHANGE),
        "openid_connect_callback": (SEE, SEE, SEE, SEE),
        "feishu_callback": (SEE, SEE, SEE, SEE),
        "dingtalk_callback": (SEE, SEE, SEE, SEE),
        "weixin_callback": (SEE, SEE, SEE, SEE),
        "identity_unlink": (NOTHING, CHANGE, CHANGE, CHANGE),
        "logout": (NOTHING, CHANGE, CHANGE, CHANGE),
        "join": (BOTH, BOTH, BOTH, BOTH),
        "session_end": (NOTHING, CHANGE, CHANGE, CHANGE),
        "password_change": (NOTHING, BOTH, BOTH, BOTH),
        "set_language": (BOTH, BOTH, BOTH, BOTH),
        "set_theme": (CHANGE, CHANGE, CHANGE, CHANGE),
    },
    "overview": {
        "dashboard": (NOTHING, SEE, SEE, SEE),
        "find": (NOTHING, SEE, SEE, SEE),
        "documents": (NOTHING, SEE, SEE, SEE),
        "document": (NOTHING, SEE, SEE, SEE),
        "concepts_dismiss": (NOTHING, CHANGE, CHANGE, CHANGE),
        "undo": (NOTHING, NOTHING, CHANGE, CHANGE),
    },
    "people": {
        "users": (NOTHING, SEE, SEE, SEE),
        "user": (NOTHING, SEE, SEE, SEE),
        "user_invite": (NOTHING, NOTHING, NOTHING, CHANGE),
        "user_role": (NOTHING, NOTHING, NOTHING, CHANGE),
        "user_active": (NOTHING, NOTHING, NOTHING, CHANGE),
        "user_link": (NOTHING, NOTHING, NOTHING, CHANGE),
        "user_session_end": (NOTHING, NOTHING, NOTHING, CHANGE),
        "tokens": (NOTHING, NOTHING, NOTHING, SEE),
        "token_new": (NOTHING, NOTHING, NOTHING, CHANGE),
        "token_revoke": (NOTHING, NOTHING, NOTHING, CHANGE),
        "user_withdraw": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
    "routes": {
        "routes": (NOTHING, SEE, SEE, SEE),
        "route": (NOTHING, DRAFT, BOTH, BOTH),
        "route_new": (NOTHING, NOTHING, BOTH, BOTH),
        "route_enabled": (NOTHING, NOTHING, CHANGE, CHANGE),
        "route_delete": (NOTHING, NOTHING, CHANGE, CHANGE),
        "alias": (NOTHING, SEE, BOTH, BOTH),
        "options": (NOTHING, SEE, SEE, SEE),
        "options_chosen": (NOTHING, NOTHING, CHANGE, CHANGE),
        "simulate": (NOTHING, DRAFT, BOTH, BOTH),
    },
    "providers": {
        "providers": (NOTHING, SEE, SEE, SEE),
        "provider": (NOTHING, SEE, SEE, BOTH),
        "provider_new": (NOTHING, NOTHING, NOTHING, BOTH),
        "provider_models": (NOTHING, NOTHING, NOTHING, BOTH),
        "providers_switch": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_test": (NOTHING, NOTHING, NOTHING, CHANGE),
        "providers_test": (NOTHING, NOTHING, NOTHING, CHANGE),
        "providers_try_again": (NOTHING, NOTHING, NOTHING, CHANGE),
        "drill_banner": (NOTHING, SEE, SEE, SEE),
        "drill": (NOTHING, SEE, SEE, BOTH),
        "drill_end": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_delete": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_key_add": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_key_change": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_key_remove": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_key_origin": (NOTHING, NOTHING, NOTHING, CHANGE),
        "provider_keys_test": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
    "services": {
        "matrix": (NOTHING, SEE, SEE, SEE),
        "matrix_cell": (NOTHING, NOTHING, CHANGE, CHANGE),
        "matrix_row": (NOTHING, NOTHING, SEE, SEE),
        "matrix_column": (NOTHING, NOTHING, SEE, SEE),
        "matrix_fill": (NOTHING, NOTHING, CHANGE, CHANGE),
        "matrix_probe": (NOTHING, NOTHING, CHANGE, CHANGE),
        "catalogue": (NOTHING, SEE, SEE, BOTH),
        "catalogue_edition": (NOTHING, NOTHING, NOTHING, BOTH),
        "services": (NOTHING, SEE, SEE, SEE),
        "service": (NOTHING, SEE, BOTH, BOTH),
        "service_new": (NOTHING, NOTHING, BOTH, BOTH),
        "service_forget": (NOTHING, NOTHING, CHANGE, CHANGE),
        "service_catalogue": (NOTHING, NOTHING, CHANGE, CHANGE),
        "service_probe": (NOTHING, NOTHING, CHANGE, CHANGE),
        "service_drift": (NOTHING, NOTHING, CHANGE, CHANGE),
        "service_nightly": (NOTHING, NOTHING, CHANGE, CHANGE),
        "service_delete": (NOTHING, NOTHING, CHANGE, CHANGE),
        "model_replace": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
    "agents": {
        "agents": (NOTHING, SEE, SEE, SEE),
        "agent": (NOTHING, SEE, BOTH, BOTH),
        "agent_new": (NOTHING, NOTHING, BOTH, BOTH),
        "agent_delete": (NOTHING, NOTHING, CHANGE, CHANGE),
        "first_call": (NOTHING, SEE, SEE, SEE),
        "key_issue": (NOTHING, NOTHING, NOTHING, CHANGE),
        "key_change": (NOTHING, NOTHING, NOTHING, CHANGE),
        "key_roll": (NOTHING, NOTHING, NOTHING, CHANGE),
        "key_revoke": (NOTHING, NOTHING, NOTHING, CHANGE),
        "agent_link_make": (NOTHING, NOTHING, NOTHING, CHANGE),
        "agent_link_revoke": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
    "agents' own pages": {  # The secret in the URL authorises these requests.
        "own_page": (SEE, SEE, SEE, SEE),
        "own_call": (SEE, SEE, SEE, SEE),
    },
    "artifacts": {
        "artifacts": (NOTHING, SEE, SEE, SEE),
        "artifact": (NOTHING, SEE, SEE, SEE),
        "artifact_compare": (NOTHING, SEE, SEE, SEE),
        "artifact_raw": PAGE_PARTS[PagePart.ARTIFACT_BYTES],
        "artifact_thumbnail": PAGE_PARTS[PagePart.ARTIFACT_BYTES],
        "artifact_upload": (NOTHING, NOTHING, NOTHING, CHANGE),
        "artifact_correct": (NOTHING, NOTHING, NOTHING, CHANGE),
        "artifacts_delete": (NOTHING, NOTHING, NOTHING, CHANGE),
        "artifacts_restore": (NOTHING, NOTHING, NOTHING, CHANGE),
        "artifact_send": PAGE_PARTS[PagePart.REAL_REQUESTS],
        "artifact_describe": PAGE_PARTS[PagePart.REAL_REQUESTS],
    },
    "requests": {
        "requests": (NOTHING, SEE, SEE, SEE),
        "usage": (NOTHING, SEE, SEE, SEE),
        "usage_csv": (NOTHING, SEE, SEE, SEE),
        "budgets": (NOTHING, SEE, SEE, SEE),
        "budget_save": (NOTHING, NOTHING, NOTHING, CHANGE),
        "budget_delete": (NOTHING, NOTHING, NOTHING, CHANGE),
        "request": (NOTHING, SEE, SEE, SEE),
        "requests_newer": (NOTHING, SEE, SEE, SEE),
        "requests_volume": (NOTHING, SEE, SEE, SEE),
        "requests_words": (NOTHING, SEE, SEE, SEE),
        "requests_columns": (NOTHING, CHANGE, CHANGE, CHANGE),
    },
    "configuration": {
        "config": (NOTHING, SEE, SEE, SEE),
        "config_import": (NOTHING, NOTHING, NOTHING, BOTH),
        "config_export": PAGE_PARTS[PagePart.EXPORTS],
    },
    "history": {
        "history": (NOTHING, SEE, SEE, SEE),
        "revision": (NOTHING, SEE, SEE, SEE),
        "compare": (NOTHING, SEE, SEE, SEE),
        "audit": (NOTHING, SEE, SEE, SEE),
        "audit_export": PAGE_PARTS[PagePart.EXPORTS],
        "restore": (NOTHING, NOTHING, BOTH, BOTH),
    },
    "alerts": {
        "alerts": (NOTHING, SEE, SEE, SEE),
        "alert_acknowledge": (NOTHING, NOTHING, CHANGE, CHANGE),
        "alert_mute": (NOTHING, NOTHING, CHANGE, CHANGE),
        "alert_webhook": (NOTHING, NOTHING, NOTHING, CHANGE),
        "alert_test": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
    "settings": {
        "settings": (NOTHING, SEE, SEE, BOTH),
        "settings_rate_set": (NOTHING, NOTHING, NOTHING, CHANGE),
        "settings_rate_remove": (NOTHING, NOTHING, NOTHING, CHANGE),
        "settings_language_save": (NOTHING, NOTHING, NOTHING, CHANGE),
        "settings_language_remove": (NOTHING, NOTHING, NOTHING, CHANGE),
        "demo_remove": (NOTHING, NOTHING, NOTHING, CHANGE),
    },
}
"""Each role's rights on each page, by subject and URL name."""

PAGE_OF_KIND: Mapping[str, str] = {
    "provider": "provider",
    "service": "service",
    "route": "route",
    "alias": "alias",
    "agent": "agent",
    "key": "key_issue",
    "language": "settings_language_save",
    "exchange_rate": "settings_rate_set",
    "budget": "budget_save",
    "configuration": "config_import",
}
"""Maps each kind of object to the URL name of the page on which it is changed. Users who may not change objects on this
page may not restore or undo such changes either."""

SCOPES = ("route", "artifacts:read", "artifacts:write", "registry:read", "agents:write", "config:read", "config:write")
DEFAULT_SCOPES = SCOPES[:4]

CALLS: Mapping[str, str] = {
    "GET /api/v1/services": "registry:read",
    "GET /api/v1/services/{service_id}/capabilities": "registry:read",
    "GET /api/v1/services/{service_id}/has-capability": "registry:read",
    "GET /api/v1/agents": "registry:read",
    "GET /api/v1/agents/me": "registry:read",
    "GET /api/v1/agents/{agent_id}": "registry:read",
    "PUT /api/v1/agents/{agent_id}": "agents:write",
    "DELETE /api/v1/agents/{agent_id}": "agents:write",
    "GET /api/v1/tools": "registry:read",
    "POST /api/v1/messages/route": "artifacts:read",
    "POST /api/v1/messages/required-capabilities": "registry:read",
    "POST /api/v1/artifacts": "artifacts:write",
    "GET /api/v1/artifacts": "artifacts:read",
    "POST /api/v1/uploads": "artifacts:write",
    "GET /api/v1/artifacts/{ref}": "artifacts:read",
    "GET /api/v1/artifacts/{ref}/raw": "artifacts:read",
    "GET /api/v1/artifacts/{ref}/info": "artifacts:read",
    "GET /api/v1/artifacts/{ref}/preview": "artifacts:read",
    "PATCH /api/v1/artifacts/{ref}": "artifacts:write",
    "DELETE /api/v1/artifacts/{ref}": "artifacts:write",
    "POST /api/v1/artifacts/{ref}/attachments/{number}": "artifacts:write",
    "GET /api/v1/routes": "registry:read",
    "GET /api/v1/providers": "registry:read",
    "GET /api/v1/config/{name}": "config:read",
    "POST /api/v1/config/import": "config:write",
    "POST /api/v1/llm/send": "route",
    "POST /api/v1/llm/resolve": "route",
    "GET /api/v1/requests": "route",
    "GET /api/v1/requests/{request_id}": "route",
    "GET /api/v1/usage": "route",
    "POST /v1/chat/completions": "route",
    "POST /v1/messages": "route",
    "POST /v1/responses": "route",
    "POST /v1/messages/count_tokens": "route",
    "POST /v1/responses/input_tokens": "route",
    "POST /v1beta/models/{name}:generateContent": "route",
    "POST /v1beta/models/{name}:streamGenerateContent": "route",
    "POST /v1beta/models/{name}:countTokens": "route",
    "POST /v1/embeddings": "route",
    "POST /v1/completions": "route",
    "POST /v1/moderations": "route",
    "POST /v1/rerank": "route",
    "POST /v1/audio/transcriptions": "route",
    "POST /v1/audio/translations": "route",
    "POST /v1/audio/speech": "route",
    "POST /v1/images/generations": "route",
    "POST /v1/images/edits": "route",
    "POST /v1/images/variations": "route",
    "GET /v1/models": "route",
    "GET /v1/models/{name}": "route",
    "GET /v1beta/models": "route",
    "GET /v1beta/models/{name}": "route",
    "GET /v1/files": "artifacts:read",
    "POST /v1/files": "artifacts:write",
    "GET /v1/files/{ref}": "artifacts:read",
    "GET /v1/files/{ref}/content": "artifacts:read",
    "DELETE /v1/files/{ref}": "artifacts:write",
}
"""All agent API calls, each with the scope that the key needs. HEAD counts as GET."""

ADMIN_SCOPES = (
    *("providers:read", "providers:write", "services:read", "services:write", "routes:read", "routes:write"),
    *("agents:read", "agents:write", "keys:read", "keys:write", "people:read", "people:write"),
    *("settings:read", "settings:write", "requests:read"),
    *("history:read", "history:write", "config:read", "config:write"),
)
"""The scopes of tokens with which administrators' scripts call the API. Agent keys have other scopes."""

# Viewers may not read the configuration files with a token, because they may not export them on the pages either.
_READING = frozenset(scope for scope in ADMIN_SCOPES if scope.endswith(":read")) - {"config:read"}
ROLE_SCOPES: Mapping[UserRole, frozenset[str]] = {
    UserRole.VIEWER: _READING,
    UserRole.EDITOR: _READING | {"config:read", "services:write", "routes:write", "agents:write", "history:write"},
    UserRole.ADMINISTRATOR: frozenset(ADMIN_SCOPES),
}
"""The token scopes that correspond to each role's rights on pages. A token may not assign a role if it lacks one of the
role's scopes."""

ADMIN_CALLS: Mapping[str, str] = {
    "GET /api/v1/admin/providers": "providers:read",
    "GET /api/v1/admin/providers/{provider}": "providers:read",
    "PUT /api/v1/admin/providers/{provider}": "providers:write",
    "DELETE /api/v1/admin/providers/{provider}": "providers:write",
    "PUT /api/v1/admin/providers/{provider}/key": "providers:write",
    "POST /api/v1/admin/providers/{provider}/drill": "providers:write",
    "DELETE /api/v1/admin/providers/{provider}/drill": "providers:write",
    "GET /api/v1/admin/services": "services:read",
    "GET /api/v1/admin/services/{service_id}": "services:read",
    "PUT /api/v1/admin/services/{service_id}": "services:write",
    "DELETE /api/v1/admin/services/{service_id}": "services:write",
    "GET /api/v1/admin/routes": "routes:read",
    "GET /api/v1/admin/routes/{task_type}": "routes:read",
    "PUT /api/v1/admin/routes/{task_type}": "routes:write",
    "DELETE /api/v1/admin/routes/{task_type}": "routes:write",
    "GET /api/v1/admin/aliases": "routes:read",
    "GET /api/v1/admin/aliases/{alias}": "routes:read",
    "PUT /api/v1/admin/aliases/{alias}": "routes:write",
    "DELETE /api/v1/admin/aliases/{alias}": "routes:write",
    "GET /api/v1/admin/languages": "settings:read",
    "GET /api/v1/admin/languages/{code}": "settings:read",
    "PUT /api/v1/admin/languages/{code}": "settings:write",
    "DELETE /api/v1/admin/languages/{code}": "settings:write",
    "GET /api/v1/admin/settings": "settings:read",
    "PUT /api/v1/admin/settings": "settings:write",
    "GET /api/v1/admin/alerts": "settings:read",
    "POST /api/v1/admin/alerts/{number}/acknowledge": "settings:write",
    "POST /api/v1/admin/alerts/{number}/mute": "settings:write",
    "PUT /api/v1/admin/alerts/webhook": "settings:write",
    "POST /api/v1/admin/alerts/test": "settings:write",
    "GET /api/v1/admin/agents": "agents:read",
    "GET /api/v1/admin/agents/{agent_id}": "agents:read",
    "PUT /api/v1/admin/agents/{agent_id}": "agents:write",
    "DELETE /api/v1/admin/agents/{agent_id}": "agents:write",
    "GET /api/v1/admin/agents/{agent_id}/keys": "keys:read",
    "POST /api/v1/admin/agents/{agent_id}/keys": "keys:write",
    "GET /api/v1/admin/agents/{agent_id}/keys/{key_id}": "keys:read",
    "PUT /api/v1/admin/agents/{agent_id}/keys/{key_id}": "keys:write",
    "DELETE /api/v1/admin/agents/{agent_id}/keys/{key_id}": "keys:write",
    "POST /api/v1/admin/agents/{agent_id}/keys/{key_id}/rotate": "keys:write",
    "GET /api/v1/admin/agents/{agent_id}/links": "keys:read",
    "POST /api/v1/admin/agents/{agent_id}/links": "keys:write",
    "DELETE /api/v1/admin/agents/{agent_id}/links/{link_id}": "keys:write",
    "GET /api/v1/admin/people": "people:read",
    "GET /api/v1/admin/people/{username}": "people:read",
    "PUT /api/v1/admin/people/{username}": "people:write",
    "POST /api/v1/admin/people": "people:write",
    "POST /api/v1/admin/people/{username}/link": "people:write",
    "DELETE /api/v1/admin/people/{username}": "people:write",
    "GET /api/v1/admin/requests": "requests:read",
    "GET /api/v1/admin/requests/{request_id}": "requests:read",
    "GET /api/v1/admin/history": "history:read",
    "POST /api/v1/admin/history/{number}/undo": "history:write",
    "POST /api/v1/admin/history/{number}/restore": "history:write",
    "GET /api/v1/admin/config/{name}": "config:read",
    "POST /api/v1/admin/config/import": "config:write",
}
"""All API calls that administrators' scripts may make, with the token scope that each requires. In addition, the
token's owner must be an administrator."""

TOOL_SCOPES: Mapping[str, str] = {
    "get_artifact": "artifacts:read",
    "find_capable_agents": "registry:read",
    "store_artifact": "artifacts:write",
    "get_my_capabilities": "registry:read",
    "list_artifacts": "artifacts:read",
}
"""All MCP tools at `/mcp`, with the scope that the key needs for each. Any valid key may list the tools."""

MACHINE_NAMESPACES = frozenset({"agents-api", "gateway", "probes"})
"""URL namespaces for programs. Programs do not sign in, so browser sessions are ignored there."""

DJANGO_ADMIN = "admin"
"""URL namespace of Django's own admin, if it is installed. Superusers may view rows there but not change them."""

WITHOUT_A_KEY = frozenset(
    {
        "agents-api:api-root",
        "agents-api:openapi-json",
        "agents-api:openapi-view",
        "agents-api:unknown-call",
        "agents-api:receive_upload",  # The secret in the URL authorises these requests.
        "gateway:unknown_url",
        "probes:healthz",
        "probes:readyz",
        "probes:metrics",
    }
)
"""Views for programs that need no key: API descriptions, the 404 response that suggests the right URL, health checks,
and uploads."""

_ROWS = {name: cells for family in PAGES.values() for name, cells in family.items()}
_FAMILIES = {name: tuple(family.values()) for family in PAGES.values() for name in family}


def right_on_page(role: UserRole, name: str) -> Right:
    """Return a role's right at this URL name, or NOTHING if the name has no row."""
    return _cell(_ROWS[name], role) if name in _ROWS else NOTHING


def is_offered(name: str, right: Right) -> bool:
    """Return whether any role has one of these rights on the page.

    If none has, the page does not support the HTTP method that requires one of them.
    """
    return any(cell & right for cell in _ROWS.get(name, ()))


def can_change_near(role: UserRole, name: str) -> bool:
    """Return whether a role may change anything on this page or on other pages under the same subject in `PAGES`."""
    return any(_cell(cells, role) & CHANGE for cells in _FAMILIES.get(name, ()))


def can_change(role: UserRole, name: str) -> bool:
    return bool(right_on_page(role, name) & CHANGE)


def changeable_kinds(role: UserRole) -> frozenset[str]:
    return frozenset(kind for kind, page in PAGE_OF_KIND.items() if can_change(role, page))


def least_role(name: str, right: Right) -> UserRole:
    """Return the least powerful role that has one of these rights on the page, or ADMINISTRATOR if none has."""
    return next((role for role in UserRole if right_on_page(role, name) & right), UserRole.ADMINISTRATOR)


def may_have(role: UserRole, part: PagePart) -> bool:
    return bool(_cell(PAGE_PARTS[part], role))


def _cell(cells: Cells, role: UserRole) -> Right:
    return dict(zip(UserRole, cells, strict=True))[role]


def call_scope(method: str, path: str) -> str | None:
    """Return the scope that an agent's call needs, or None if the call is not in the table.

    `path` is written as in the table, e.g. `/v1/files/{ref}`.
    """
    # HEAD needs the same scope as GET.
    return CALLS.get(f"{'GET' if method == 'HEAD' else method} {path}")


def admin_call_scope(method: str, path: str) -> str | None:
    return ADMIN_CALLS.get(f"{'GET' if method == 'HEAD' else method} {path}")


@cache
def call_methods(path: str) -> tuple[str, ...]:
    """Return the HTTP methods that a path supports, including HEAD if it supports GET. An unknown path has none."""
    rows = [
        method for method, _, call_path in (call.partition(" ") for call in (*CALLS, *ADMIN_CALLS)) if call_path == path
    ]
    return tuple(name for method in rows for name in ((method, "HEAD") if method == "GET" else (method,)))


@cache
def route_path(route: str) -> str:
    """Return a Django route as a path in the table: `v1/files/<str:ref>` becomes `/v1/files/{ref}`."""
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
