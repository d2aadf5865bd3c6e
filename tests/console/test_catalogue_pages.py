"""The catalogue's page: sources, and versions that can be previewed, applied, undone and discarded."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from capabilities.models import CatalogueEdition, Provider, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.models import AuditEvent, Installation, Revision
from routing_admin.upstream import process_upstream, run_sync
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
PAGE = "/matrix/catalogue/"
API = {
    "deepseek": {
        "models": {
            "deepseek-v4-flash": {"modalities": {"input": ["text", "image"], "output": ["text"]}, "tool_call": True},
            "deepseek-v5": {"modalities": {"input": ["text", "image"], "output": ["text"]}},
        }
    }
}
"""A models.dev list that agrees with LiteLLM's list, unlike the list that is shipped."""


@pytest.fixture
def flash_service() -> Service:
    """A service that was not filled in from the catalogue. Two sources describe its model differently."""
    provider = Provider.objects.create(
        name="deepseek", endpoint="https://api.deepseek.com", default_model="deepseek-v4-flash", key_source="none"
    )
    row = Service.objects.create(service_id="flash", name="Flash", provider=provider, model="deepseek-v4-flash")
    for side in ("input", "output"):
        ServiceCapability.objects.create(service=row, side=side, name="text", source="unknown")
    return row


def upload_catalogue(client: Client, value: Any) -> Any:
    file = BytesIO(value if isinstance(value, bytes) else json.dumps(value).encode())
    file.name = "api.json"
    return client.post(PAGE, {"act": "file", "file": file})


def vision_capability() -> tuple[bool, str]:
    return ServiceCapability.objects.values_list("supported", "source").get(side="input", name="vision")


def test_catalogue_page_lists_sources_with_versions_dates_and_licences(admin: Client) -> None:
    page = Page(admin.get(PAGE))
    editions = {"LiteLLM": "1.109.1", "models.dev": "2026-08-18", "OpenAI SDK": "3.54.0", "Anthropic SDK": "2.12.0"}
    assert {name: edition for name, edition in editions.items() if not page.row(name).shows(edition)} == {}
    assert page.row("LiteLLM").shows("MIT")
    assert page.shows("Nothing is downloaded automatically")
    assert PAGE in Page(admin.get("/matrix/")).link_urls


def test_catalogue_search_finds_a_model_by_name_and_host(admin: Client) -> None:
    found = Page(admin.get(PAGE, {"q": "deepseek chat"})).control("found")
    assert found.rows[0] == "deepseek-chat"
    assert re.fullmatch(r"[\d,]+", found.column("Context")[0])
    assert all("deepseek" in model for model in found.column("Model"))
    assert Page(admin.get(PAGE, {"q": "no-such-model"})).shows("No model of the catalogue matches.")
    assert Page(admin.get(PAGE)).control("found").table_rows == []


def test_uploaded_catalogue_is_previewed_without_changes_to_the_configuration(
    admin: Client, flash_service: Service
) -> None:
    answer = upload_catalogue(admin, API)
    assert answer.status_code == 302
    page = Page(admin.get(answer.url))
    (ours,) = (item for item in page.region("Your model services").items if "vision" in item.text)
    assert ours.text == "flash vision yes"
    assert not page.region("Your model services").shows("audio")
    models = page.region("Models")
    assert models.text.startswith("Models 1 added, ")
    assert models.shows("deepseek / deepseek-v4-flash vision yes: LiteLLM 1.109.1, models.dev ")
    assert (Installation.current().catalogue, Revision.objects.count()) == ("", 0)
    assert Page(admin.get(PAGE)).row("models.dev").shows("2026-08-18")


def test_applying_a_catalogue_creates_one_revision_that_undo_reverts(admin: Client, flash_service: Service) -> None:
    admin.post("/matrix/fill/", {"act": "catalogue"})
    assert vision_capability() == (False, "contested")
    url = upload_catalogue(admin, API).url
    admin.post(url)
    assert vision_capability() == (True, "catalogue")
    assert Page(admin.get(PAGE)).shows("A refreshed edition is in use")
    assert snapshot.current().catalogue.entry_at("deepseek", "https://api.deepseek.com", "deepseek-v5") is not None
    newest = Revision.objects.latest("number")
    assert AuditEvent.objects.filter(action="catalogue.take", revision=newest.number).exists()
    assert Page(admin.get(f"/history/{newest.number}/")).shows("models.dev")
    admin.post(f"/undo/{newest.number}/")
    assert vision_capability() == (False, "contested")
    assert Page(admin.get(PAGE)).shows("Shipped with the program")
    assert snapshot.current().catalogue.entry_at("deepseek", "https://api.deepseek.com", "deepseek-v5") is None


def test_discarding_the_catalogue_restores_the_shipped_catalogue(admin: Client, flash_service: Service) -> None:
    admin.post(upload_catalogue(admin, API).url)
    admin.post(PAGE, {"act": "drop"})
    assert vision_capability() == (False, "contested")
    assert snapshot.current().configuration.catalogue is None


def test_another_process_uses_the_catalogue_after_its_next_refresh(admin: Client, flash_service: Service) -> None:
    admin.post(upload_catalogue(admin, API).url)
    snapshot.refresh()
    assert snapshot.current().catalogue.entry_at("deepseek", "https://api.deepseek.com", "deepseek-v5") is not None


@pytest.mark.parametrize(
    ("value", "error"),
    [(b"<html>", "not JSON"), ({"providers": []}, "known format"), (b"", "Choose a file.")],
)
def test_invalid_catalogue_file_is_rejected_and_not_stored(admin: Client, value: Any, error: str) -> None:
    answer = upload_catalogue(admin, value)
    assert answer.status_code == 422
    assert error in Page(answer).alert
    assert not CatalogueEdition.objects.exists()


def test_unknown_catalogue_version_returns_404(admin: Client) -> None:
    assert admin.get(f"{PAGE}987/").status_code == 404
    assert admin.post(f"{PAGE}987/").status_code == 404


def test_shipped_catalogue_is_used_if_the_configured_version_is_missing_in_the_database(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Installation.objects.update_or_create(id=1, defaults={"catalogue": "gone"})
    snapshot.refresh()
    assert snapshot.current().catalogue.lookup("openai", "gpt-4o") is not None
    assert "gone is not in this database" in caplog.text


@pytest.fixture
def model_list_url() -> Iterator[str]:
    """Serve model lists and return the server's URL. Only the list below `/rich` includes capabilities."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            models = [{"id": "house-model", "capabilities": {"vision": True}}] if "rich" in self.path else [{"id": "m"}]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"data": models}).encode())

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    run_sync(process_upstream().close())
    server.shutdown()


def test_button_fetches_the_model_list_of_a_provider_into_the_catalogue(admin: Client, model_list_url: str) -> None:
    Provider.objects.create(name="house", endpoint=f"{model_list_url}/rich", default_model="m", key_source="none")
    snapshot.refresh()
    answer = admin.post(PAGE, {"act": "ask", "provider": "house"})
    assert answer.status_code == 302, Page(answer).alert
    admin.post(answer.url)
    assert Page(admin.get(PAGE)).row("house").shows("the provider's own list")
    entry = snapshot.current().catalogue.entry_at("house", f"{model_list_url}/rich", "house-model")
    assert entry is not None
    assert entry.capabilities.input == ("text", "vision")


def test_fetching_a_provider_list_without_capabilities_shows_an_error(admin: Client, model_list_url: str) -> None:
    Provider.objects.create(name="plain", endpoint=f"{model_list_url}/v1", default_model="m", key_source="none")
    Provider.objects.create(name="gone", endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
    snapshot.refresh()
    for name, error in (
        ("plain", "only lists model names"),
        ("gone", "gave no usable answer"),
        ("none", "Choose a provider."),
    ):
        answer = admin.post(PAGE, {"act": "ask", "provider": name})
        assert answer.status_code == 422
        assert error in Page(answer).alert
    assert not CatalogueEdition.objects.exists()


def test_catalogue_command_imports_a_file_and_lists_the_changes(
    flash_service: Service, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(API))
    call_command("refresh_catalogue", str(path), "--dry-run")
    output = capsys.readouterr().out
    assert "flash: input vision yes (catalogue)" in output
    assert "Nothing was changed (dry run)." in output
    assert Installation.current().catalogue == ""
    call_command("refresh_catalogue", str(path))
    assert "Applied as revision" in capsys.readouterr().out
    assert vision_capability() == (True, "catalogue")
    call_command("refresh_catalogue", "--drop")
    assert Installation.current().catalogue == ""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [([], "Give a file"), (["x.json", "--drop"], "Give a file"), (["/no/such/file"], "No such file"),
     (["--provider", "unknown"], "no enabled provider unknown")],
)  # fmt: skip
def test_catalogue_command_fails_with_a_one_line_error(arguments: list[str], error: str) -> None:
    with pytest.raises(CommandError, match=error):
        call_command("refresh_catalogue", *arguments)
