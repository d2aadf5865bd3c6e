"""A lone surrogate in JSON is rejected, with the reason, by every endpoint that reads JSON."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capabilities.core.permissions import SCOPES
from tests.cast import create_key, create_token

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
BODIES = [
    b'{"services":"\\ud83d"}',
    b'{"services":[{"id":"a","name":"x","unknown":{"\\udc00":1}}]}',
    b'{"services":[{"id":"\\ud83d","name":"\\ud83d","baseURL":"https://a.example/\\ud83d","model":"\\ud83d"}]}',
    b'{"providers":[{"providerName":"\\ud83d","endpoint":"https://a.example","apiKey":"\\ud83d"}],"routing":{}}',
    b'{"routing":{"\\ud83d":{"provider":"\\ud83d"}},"providers":[]}',
    b'{"model":"\\ud83d","messages":[{"role":"user","content":"\\ud83d"}],"max_tokens":5,"input":"\\ud83d"}',
    b'{"prompt":"\\ud83d","taskType":"\\ud83d","message":{"text":"\\ud83d"},"text":"\\ud83d","filename":"\\ud83d"}',
    b'{"jsonrpc":"2.0","id":"\\ud83d","method":"tools/call","params":{"name":"\\ud83d","arguments":{"a":"\\ud83d"}}}',
    b'{"name":"\\ud83d","serviceId":"\\ud83d","endpoint":"\\ud83d","key":"\\ud83d"}',
]
PATHS = [
    *("/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/embeddings"),
    *(
        "/v1/responses/input_tokens",
        "/v1/rerank",
        "/v1/completions",
        "/v1/moderations",
        "/v1/images/generations",
        "/v1/audio/speech",
    ),
    *("/api/v1/config/import", "/api/v1/config/import?dryRun=true", "/api/v1/llm/send", "/api/v1/llm/resolve"),
    *("/api/v1/messages/route", "/api/v1/messages/required-capabilities", "/api/v1/artifacts", "/mcp"),
    *("/api/v1/admin/providers", "/api/v1/admin/services", "/api/v1/admin/routes", "/api/v1/admin/agents"),
]


@pytest.mark.parametrize("path", PATHS)
def test_lone_surrogate_is_rejected_with_a_reason(path: str, admin_account: Any) -> None:
    client = Client(raise_request_exception=False)
    for bearer in (create_key("text-agent", scopes=SCOPES), create_token(admin_account)):
        for body in BODIES:
            headers = {"authorization": f"Bearer {bearer}", "accept": "application/json"}
            answer = client.post(path, body, content_type="application/json", headers=headers)
            assert 400 <= answer.status_code < 500, (body, answer.content)


@pytest.mark.parametrize("body", BODIES[:5])
def test_import_with_a_lone_surrogate_names_its_path_and_changes_nothing(body: bytes, admin: Client) -> None:
    headers = {"authorization": f"Bearer {create_key('text-agent', scopes=SCOPES)}"}
    answer = Client().post("/api/v1/config/import", body, content_type="application/json", headers=headers)
    assert answer.status_code in (400, 422)
    assert "half a surrogate pair" in answer.content.decode()
    page = admin.post(reverse("config_import"), {"text": body.decode()})
    assert page.status_code == 422
    assert "half a surrogate pair" in page.content.decode()
