"""Routes, providers and configuration files in the agents' API."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient

from capabilities.actors import SYSTEM
from capabilities.models import Provider
from routing_admin.console.providers.actions import save_provider
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

DEMO = Path(__file__).resolve().parents[2] / "routing_admin" / "console" / "demo"


def with_route(task_type: str) -> dict[str, Any]:
    file: dict[str, Any] = json.loads((DEMO / "llm-routing.json").read_text())
    file["routing"][task_type] = {"provider": "echo", "temperature": 0, "fallback": ["echo/echo-vision"]}
    return file


NEW_ROUTE = with_route("poetry")


def test_routes_are_listed_in_the_order_of_the_file(text_agent: Any) -> None:
    routes = {route["taskType"]: route for route in text_agent.get("/routes").json()["routes"]}
    file_routes = json.loads((DEMO / "llm-routing.json").read_text())["routing"]
    assert list(routes) == list(file_routes)
    for task_type, entry in file_routes.items():
        assert routes[task_type] == {"taskType": task_type, "fallback": [], **entry}


def test_providers_are_listed_with_usability_and_without_keys(text_agent: Any) -> None:
    response = text_agent.get("/providers")
    providers = {provider["providerName"]: provider for provider in response.json()["providers"]}
    assert providers["echo"]["usable"] is True
    assert "reason" not in providers["echo"]
    unusable = [provider for provider in providers.values() if not provider["usable"]]
    assert unusable
    assert all(provider["reason"] for provider in unusable)
    row = Provider.objects.get(name="echo")
    row.enabled = False
    save_provider(SYSTEM, row)
    echo = {provider["providerName"]: provider for provider in text_agent.get("/providers").json()["providers"]}["echo"]
    assert (echo["enabled"], echo["usable"]) == (False, False)
    assert "disabled" in echo["reason"]


@pytest.mark.requirement("MCR-5.1", "MMR-P1")
@pytest.mark.parametrize("name", ["llm-routing", "llmservices"])
def test_export_equals_the_imported_files_and_its_etag_is_the_revision(name: str, text_agent: Any) -> None:
    response = text_agent.get(f"/config/{name}")
    exported = response.json()
    assert bool(exported.pop("agents", None)) == (name == "llm-routing")
    assert exported == json.loads((DEMO / f"{name}.json").read_text())
    assert response["ETag"] == f'"{Revision.objects.first().number}"'
    cached = text_agent.get(f"/config/{name}", headers={"if-none-match": response["ETag"]})
    assert (cached.status_code, cached.content) == (304, b"")


def test_export_can_name_the_gateways_own_url_for_other_programs(text_agent: Any) -> None:
    gateway = text_agent.get("/config/llm-routing", **{"for": "gateway"}).json()
    assert all("/v1/chat/completions" in provider["endpoint"] for provider in gateway["providers"])
    assert text_agent.get("/config/llm-routing", **{"for": "seed"}).status_code == 200
    refused = text_agent.get("/config/llm-routing", **{"for": "fun"})
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (422, "for")
    assert text_agent.get("/config/passwords").status_code == 404


def test_dry_run_returns_the_difference_and_changes_nothing(text_agent: Any) -> None:
    before = Revision.objects.count()
    preview = text_agent.post("/config/import", NEW_ROUTE, dryRun="true").json()
    assert [(change["action"], change["kind"], change["name"]) for change in preview["changes"]] == [
        ("added", "route", "poetry")
    ]
    assert "poetry" in preview["changes"][0]["text"]
    assert Revision.objects.count() == before
    assert "poetry" not in str(text_agent.get("/routes").json())


def test_dry_run_of_an_import_lists_consequences_for_routes_and_agents(text_agent: Any) -> None:
    """Each consequence has a severity, an affected object and a message.

    A change that only adds entries has no consequences.
    """
    assert text_agent.post("/config/import", NEW_ROUTE, dryRun="true").json()["consequences"] == []
    lonely = {**NEW_ROUTE, "routing": {"default": {"provider": "echo"}}}
    consequences = text_agent.post("/config/import", lonely, dryRun="true", prune="true").json()["consequences"]
    assert {
        "gravity": "changes",
        "kind": "route",
        "name": "design",
        "text": "design is removed; its tasks go to default.",
    } in consequences


def test_import_creates_one_revision_that_is_used_immediately(text_agent: Any) -> None:
    before = Revision.objects.count()
    answer = text_agent.post("/config/import", {**NEW_ROUTE, "someday": {"x": 1}}).json()
    assert answer["revision"] == Revision.objects.first().number
    assert answer["keptUnknown"] == ["someday"]
    assert Revision.objects.count() == before + 1
    assert Revision.objects.first().actor == "text-agent"
    assert "poetry" in str(text_agent.get("/routes").json())


@pytest.mark.requirement("MMR-P3", "MMR-P4", "MMR-E3")
@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_invalid_file_changes_nothing_and_every_problem_is_listed(dry_run: str, text_agent: Any) -> None:
    before = Revision.objects.count()
    invalid_file = {"providers": [{"providerName": "x"}], "routing": {"poetry": {"provider": "unknown"}}}
    response = text_agent.post("/config/import", invalid_file, dryRun=dry_run)
    assert response.status_code == 422
    paths = [detail["path"] for detail in response.json()["details"]]
    assert "providers[0].endpoint" in paths
    assert "routing.poetry.provider" in paths
    assert Revision.objects.count() == before


def test_import_respects_if_match(text_agent: Any) -> None:
    tag = text_agent.get("/config/llm-routing")["ETag"]
    text_agent.post("/config/import", NEW_ROUTE)
    second_file = with_route("prose")
    for query in ({}, {"dryRun": "true"}):
        refused = text_agent.post("/config/import", second_file, headers={"if-match": tag}, **query)
        assert (refused.status_code, refused.json()["error"]) == (409, "changed_meanwhile")
    etag = text_agent.get("/config/llm-routing")["ETag"]
    assert text_agent.post("/config/import", second_file, headers={"if-match": etag}).status_code == 200
    assert text_agent.post("/config/import", second_file, headers={"if-match": '"abc"'}).status_code == 400


@pytest.mark.parametrize("body", [b"{", b"", b"[]", b"\xff", b'{"neither": 1}'])
def test_invalid_configuration_is_rejected_without_a_traceback(body: bytes, text_agent: Any) -> None:
    response = text_agent.post("/config/import", body)
    assert response.status_code == 422
    assert response.json()["details"]


def test_both_files_are_imported_as_one_revision(text_agent: Any) -> None:
    files = [SimpleUploadedFile(f"{n}.json", (DEMO / f"{n}.json").read_bytes()) for n in ("llmservices", "llm-routing")]
    response = text_agent.client.post("/api/v1/config/import", {"file": files}, headers=text_agent.headers)
    assert (response.status_code, response.json()["changes"]) == (200, [])
    empty = text_agent.client.post("/api/v1/config/import", {"x": "1"}, headers=text_agent.headers)
    assert (empty.status_code, empty.json()["details"][0]["path"]) == (422, "file")


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
async def test_waiting_reader_gets_the_next_revision_immediately_if_it_differs(text_agent: Any) -> None:
    client, address = AsyncClient(), "/api/v1/config/llm-routing"
    revision = int((await client.get(address, headers=text_agent.headers))["x-revision"])
    started = time.monotonic()
    behind = await client.get(f"{address}?wait=30&since={revision - 1}", headers=text_agent.headers)
    assert int(behind["x-revision"]) == revision
    waiting = asyncio.create_task(client.get(f"{address}?wait=30&since={revision}", headers=text_agent.headers))
    await sync_to_async(text_agent.post)("/config/import", NEW_ROUTE)
    assert int((await waiting)["x-revision"]) > revision
    assert time.monotonic() - started < 10
    ahead = await client.get(f"{address}?wait=0.1&since={revision + 1}", headers=text_agent.headers)
    assert int(ahead["x-revision"]) == revision + 1


@pytest.mark.parametrize(
    "part",
    [
        {"aliases": {"gpt-4": "auto"}},
        {"agents": [{"id": "mine", "limits": {"tokensPerDay": 10**9}}]},
        {"languages": {"pt": "Responda em português."}},
        {"labelBudgets": {"team:x": {"inFlight": 9}}},
        {"catalogue": "of a day"},
    ],
    ids=lambda part: next(iter(part)),
)
def test_import_with_an_agent_key_cannot_change_administrators_settings(part: dict[str, Any], text_agent: Any) -> None:
    before = Revision.objects.count()
    for query in ("?dryRun=true", ""):
        answer = text_agent.post(f"/config/import{query}", NEW_ROUTE | part)
        assert answer.status_code == 403, answer.content
    assert Revision.objects.count() == before
