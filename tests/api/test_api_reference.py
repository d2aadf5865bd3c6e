"""The API reference: what it reads from the OpenAPI document, and its pages with and without a signed-in user."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from routing_admin.api.reference import Field, first_sentence, list_operations
from tests.console.page import Page
from tests.console.visits import response_text

DOCUMENT: dict[str, Any] = {
    "paths": {
        "/things/{name}": {
            "put": {
                "operationId": "put_thing",
                "summary": "Put a thing",
                "description": "Put a thing.\n\n409 if it is stale.",
                "tags": ["things"],
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                },
                "responses": {"204": {"description": "Stored"}},
            }
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "description": "A thing.",
                "required": ["size", "parts"],
                "properties": {
                    "size": {"enum": ["s", "l"]},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                    "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Shown to people."},
                },
            },
            "Part": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Part"}}},
        }
    },
}


def test_operation_lists_nested_fields_and_an_example_of_the_required_ones() -> None:
    """The nested fields of a recursive schema are listed to a fixed depth."""
    (operation,) = list_operations(DOCUMENT)
    assert (operation.method, operation.details) == ("PUT", "409 if it is stale.")
    assert operation.parameters == (Field("name", "string", is_required=True),)
    assert [(field.name, field.kind, field.is_required) for field in operation.bodies[0].fields] == [
        ("size", '"s" | "l"', True),
        ("parts", "array of object", True),
        ("parts[].inner", "object", False),
        ("parts[].inner.inner", "object", False),
        ("label", "string or null", False),
    ]
    assert operation.bodies[0].about == "A thing."
    assert [(answer.status, answer.about) for answer in operation.answers] == [("204", "Stored")]
    assert operation.example.splitlines()[0] == 'curl -X PUT "$URL/things/{name}" \\'
    assert operation.example.splitlines()[-1] == """  -d '{"size": "s", "parts": []}'"""


def test_title_is_the_first_paragraph_on_one_line() -> None:
    assert first_sentence("List all\nthings.\n\nMore.") == "List all things"


def test_reference_lists_every_call_with_its_own_page(client: Client, demo: None) -> None:
    document = client.get("/api/v1/openapi.json").json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    page = client.get("/api/v1/docs").content.decode()
    assert 'id="side"' not in page
    for operation in operations:
        assert f'href="?operation={operation["operationId"]}"' in page
    issue = response_text(client.get("/api/v1/docs?operation=admin_issue_key"))
    assert "issued.expiresAt" in issue
    assert "Answer 201" in issue
    assert "Authorization: Bearer $KEY" in issue
    assert client.get("/api/v1/docs?operation=unknown").status_code == 404


def test_every_call_of_the_reference_can_be_opened(client: Client, demo: None) -> None:
    document = client.get("/api/v1/openapi.json").json()
    for path in document["paths"].values():
        for operation in path.values():
            answer = client.get(f"/api/v1/docs?operation={operation['operationId']}")
            assert answer.status_code == 200
            assert len(answer.content) <= 100_000


@pytest.mark.parametrize("path", ["/api/v1/docs", "/api/v1/docs?operation=send", "/nothing/here"])
def test_signed_in_users_see_the_navigation(path: str, admin: Client) -> None:
    page = admin.get(path).content.decode()
    assert 'id="side"' in page
    assert 'href="/requests/"' in page


def test_breadcrumb_links_signed_in_users_to_the_documentation(client: Client, admin: Client) -> None:
    for path in ("/api/v1/docs", "/api/v1/docs?operation=send"):
        assert Page(admin.get(path)).link_urls.count("/docs/") == 2
        assert "/docs/" not in Page(client.get(path)).link_urls


def test_calls_are_found_by_all_words_of_method_path_and_title(client: Client) -> None:
    found = response_text(client.get("/api/v1/docs?q=post+KEYS"))
    assert "?operation=admin_issue_key" in found
    assert "?operation=send" not in found
    assert "No call matches." in response_text(client.get("/api/v1/docs?q=nothing-like-this"))


def test_translated_reference_notes_that_calls_are_described_in_english(client: Client) -> None:
    note = "调用和字段的说明只有英文。"
    assert note in response_text(client.get("/api/v1/docs", headers={"accept-language": "zh-CN"}))
    assert note not in response_text(client.get("/api/v1/docs"))
