"""Scopes of API calls: the permission table lists every call with the scope that this test expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from capabilities.core.permissions import (
    ADMIN_CALLS,
    ADMIN_SCOPES,
    CALLS,
    MACHINE_NAMESPACES,
    SCOPES,
    WITHOUT_A_KEY,
    route_path,
)
from tests.cast import create_key, create_token

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

SCOPE_OF = {
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
    "GET /api/v1/artifacts/{ref}/raw": "artifacts:read",
    "GET /api/v1/artifacts/{ref}/info": "artifacts:read",
    "GET /api/v1/artifacts/{ref}/preview": "artifacts:read",
    "GET /api/v1/artifacts/{ref}": "artifacts:read",
    "PATCH /api/v1/artifacts/{ref}": "artifacts:write",
    "DELETE /api/v1/artifacts/{ref}": "artifacts:write",
    "POST /api/v1/artifacts/{ref}/attachments/{number}": "artifacts:write",
    "POST /api/v1/uploads": "artifacts:write",
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
    "GET /v1beta/models": "route",
    "HEAD /v1beta/models": "route",
    "GET /v1beta/models/{name}": "route",
    "HEAD /v1beta/models/{name}": "route",
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
    "HEAD /v1/models": "route",
    "GET /v1/models/{name}": "route",
    "HEAD /v1/models/{name}": "route",
    "POST /v1/files": "artifacts:write",
    "GET /v1/files": "artifacts:read",
    "HEAD /v1/files": "artifacts:read",
    "GET /v1/files/{ref}": "artifacts:read",
    "HEAD /v1/files/{ref}": "artifacts:read",
    "DELETE /v1/files/{ref}": "artifacts:write",
    "GET /v1/files/{ref}/content": "artifacts:read",
    "HEAD /v1/files/{ref}/content": "artifacts:read",
}
"""The scope that each of the agents' API calls requires."""

AUTHORIZED_BY_URL = {"PUT /api/v1/uploads/{token}"}
"""Calls that need no key because their URL contains a secret."""
ARGUMENTS = {
    "service_id": "text-model",
    "agent_id": "unknown",
    "ref": "artifact:none",
    "request_id": "req_1",
    "provider": "unknown",
    "task_type": "nothing",
    "key_id": "none",
    "link_id": "none",
    "username": "unknown",
    "number": "987",
    "alias": "nothing",
    "code": "xx",
}


@pytest.fixture
def client(demo: None) -> Client:
    return Client(raise_request_exception=False)


def call(client: Client, name: str, headers: dict[str, str]) -> Any:
    method, path = name.split(" ")
    name = "llm-routing" if "/config/" in path else "text-model"
    return client.generic(method, path.format(**ARGUMENTS, name=name), headers=headers)


def key_headers(*scopes: str) -> dict[str, str]:
    return {"authorization": f"Bearer {create_key('text-agent', scopes=scopes)}"}


def error_code(answer: Any) -> str:
    """Return the error code from an error in the API's format. Empty for HEAD, whose response has no body."""
    if not answer.content:
        return ""
    error = answer.json()["error"]
    if isinstance(error, dict) and "details" in error:
        return str(error["details"][0]["reason"]).lower()
    return str(error["code"] if isinstance(error, dict) else error)


@pytest.mark.parametrize("name", SCOPE_OF)
def test_every_call_requires_a_key_with_its_scope(name: str, client: Client) -> None:
    """Below /v1, a wrong key gets OpenAI's error code `invalid_api_key`, which client libraries recognize."""
    key_of_other_scopes = key_headers(*(scope for scope in SCOPES if scope != SCOPE_OF[name]))
    for headers, status, code in (
        ({}, 401, "key_missing"),
        ({"authorization": "Bearer ra_nonsense"}, 401, "key_invalid" if "/api/v1/" in name else "invalid_api_key"),
        (key_of_other_scopes, 403, "scope_missing"),
    ):
        answer = call(client, name, headers)
        assert answer.status_code == status
        if name.startswith("HEAD "):
            continue
        assert error_code(answer) == code
        assert status == 401 or SCOPE_OF[name] in answer.content.decode()
        if "/api/v1/" in name:
            assert answer.json()["requestId"] == answer["x-request-id"]
            assert status == 403 or answer["WWW-Authenticate"].startswith("Bearer")
            assert status == 401 or answer.json()["scope"] == SCOPE_OF[name]


@pytest.mark.parametrize("name", SCOPE_OF)
def test_key_with_only_the_scope_of_a_call_is_accepted(name: str, client: Client) -> None:
    assert call(client, name, key_headers(SCOPE_OF[name])).status_code not in (401, 403)


def test_openapi_document_lists_exactly_the_calls_of_the_permission_table(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    documented = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    assert documented == {name for name in SCOPE_OF if "/api/v1/" in name} | {*ADMIN_SCOPE_OF} | AUTHORIZED_BY_URL
    assert all(
        "default" in operation["responses"] for item in document["paths"].values() for operation in item.values()
    )
    assert list(document["components"]["securitySchemes"]) == ["LimitedKeyAuth", "AdminTokenAuth"]
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(names)) == len(names)
    # Code generators name functions after these ids, so they must not contain names of the project's modules.
    assert not [name for name in names if name.startswith("routing_admin")]
    assert client.get("/api/v1/docs").status_code == 200


ADMIN_SCOPE_OF = {
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
"""The scope that a script's token needs for each call of the administrators' API."""


def token_headers(account: Any, *scopes: str) -> dict[str, str]:
    return {"authorization": f"Bearer {create_token(account, *scopes)}"}


@pytest.mark.parametrize("name", ADMIN_SCOPE_OF)
def test_every_administration_call_requires_a_token_with_its_scope(
    name: str, client: Client, admin_account: Any
) -> None:
    needed = ADMIN_SCOPE_OF[name]
    token_of_other_scopes = token_headers(admin_account, *(scope for scope in ADMIN_SCOPES if scope != needed))
    for headers, status, code in (
        ({}, 401, "token_missing"),
        (key_headers(*SCOPES), 401, "token_missing"),
        ({"authorization": "Bearer rat_nonsense"}, 401, "token_invalid"),
        (token_of_other_scopes, 403, "scope_missing"),
    ):
        answer = call(client, name, headers)
        assert (answer.status_code, error_code(answer)) == (status, code)
        assert status == 401 or answer.json()["scope"] == needed
    answer = call(client, name, {"authorization": f"Bearer {create_token(admin_account, needed, name='fitting')}"})
    assert answer.status_code not in (401, 403)


def list_api_urls(
    patterns: list[URLPattern | URLResolver], before: str = "", space: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the view name and path of every API URL, written as in the permission table."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            namespace = pattern.namespace if pattern.namespace in MACHINE_NAMESPACES else space
            yield from list_api_urls(pattern.url_patterns, before + str(pattern.pattern), namespace or "")
        elif space:
            yield f"{space}:{pattern.name}", route_path(before + str(pattern.pattern))


def test_permission_table_and_api_urls_list_the_same_calls(client: Client) -> None:
    urls = list(list_api_urls(get_resolver().url_patterns))
    with_key = {path for view, path in urls if view not in WITHOUT_A_KEY}
    methods = {(name.split(" ")[1], name.split(" ")[0]) for name in (*SCOPE_OF, *ADMIN_SCOPE_OF)}
    assert with_key == {path for path, _ in methods} == {name.split(" ")[1] for name in (*CALLS, *ADMIN_CALLS)}
    assert {view for view, _ in urls} >= WITHOUT_A_KEY
    for path in with_key:
        answer = client.generic("SHOUT", path.format(**ARGUMENTS, name="text-model"))
        allowed = {method.strip() for method in answer["Allow"].split(",")}
        assert (answer.status_code, allowed) == (405, {method for of, method in methods if of == path}), path


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/api/v1/docs", 200),
        ("/api/v1/openapi.json", 200),
        ("/api/v1/nothing", 404),
        ("/v1/nothing", 404),
        ("/v1/messages", 405),
        ("/embeddings", 404),
    ],
)
def test_documentation_health_checks_and_url_hints_need_no_key(path: str, status: int, client: Client) -> None:
    assert client.get(path).status_code == status


@pytest.mark.urls("tests.permissions.unlisted_urls")
def test_call_missing_from_the_permission_table_is_refused_for_everyone(client: Client) -> None:
    for headers in ({}, key_headers(*SCOPES)):
        answer = client.get("/v1/unlisted", headers=headers)
        assert (answer.status_code, b"reached" in answer.content) == (403, False)
