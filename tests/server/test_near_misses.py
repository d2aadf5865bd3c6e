"""Common mistakes in API call URLs are corrected. Page URLs are left unchanged."""

from __future__ import annotations

import pytest
from django.test import Client

from routing_admin.platform.server.url_aliases import resolve_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/models", "/v1/models"),
        ("///v1//models//", "/v1/models"),
        ("/v1/", "/v1"),
        ("/api/v1/", "/api/v1/"),
        ("/api/v1", "/api/v1/"),
        ("/api//v1/agents/me/", "/api/v1/agents/me"),
        ("/chat/completions/", "/v1/chat/completions"),
        ("/api/chat/completions", "/v1/chat/completions"),
        ("/api/v1/chat/completions", "/v1/chat/completions"),
        ("/v1beta/openai/chat/completions", "/v1/chat/completions"),
        ("/v1beta/models/", "/v1beta/models"),
        ("/v1/models/a:countTokens", "/v1beta/models/a:countTokens"),
        ("/v1/models/task:a", "/v1/models/task:a"),
        *((path, path) for path in ("/", "//", "/login/", "//login/", "/services//x/", "/api/v2/x/")),
    ],
)
def test_only_api_paths_are_corrected(path: str, expected: str) -> None:
    assert resolve_path(path) == expected
    assert resolve_path(expected) == expected


@pytest.mark.parametrize("path", ["/v1/models/", "/api/v1/services/", "/chat/completions"])
def test_misspelled_api_path_is_corrected_by_django(path: str, client: Client, db: None) -> None:
    assert client.post(path).status_code in (401, 405)


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/messages/nothing", "/v1beta/nothing"])
def test_unknown_url_is_not_found_in_every_protocol(path: str, client: Client, db: None) -> None:
    answer = client.post(path)
    assert (answer.status_code, answer["x-should-retry"]) == (404, "false")
