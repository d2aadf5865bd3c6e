"""How much text of a file a model gets is set for the installation, a service and a route; the nearest one applies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from django.test import Client
from test_settings_page import save

from capabilities.acts import SYSTEM
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.exports import export
from routing_admin.console.demo import load as demo
from routing_admin.console.routes.draft import draft_of
from routing_admin.console.services.actions import save_service
from routing_admin.console.settings.actions import set_content_text
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.files.exporting import FileFormat
from routing_admin.core.files.importing import import_files
from routing_admin.dispatch.model_endpoints import endpoint_at, list_endpoints
from routing_admin.models import Installation

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def limit_of(service_id: str, route: Mapping[str, str] | None = None) -> TextLimit:
    state = snapshot.current()
    service = state.configuration.service(service_id)
    assert service is not None
    provider = state.configuration.provider(service.provider)
    assert provider is not None
    return endpoint_at(state, provider, service.model, service=service, content=route).reader.text_limit


def test_the_nearest_limit_applies() -> None:
    demo.load()
    assert limit_of("text-model") == TextLimit()
    set_content_text(SYSTEM, "30%")
    assert limit_of("text-model") == TextLimit(share=0.3)
    row = Service.objects.get(service_id="text-model")
    row.content = {"text": "200000"}
    save_service(SYSTEM, row)
    assert limit_of("text-model") == TextLimit(chars=200_000)
    assert limit_of("text-model", {"policy": "describe"}) == TextLimit(chars=200_000)
    assert limit_of("text-model", {"text": "10%"}) == TextLimit(share=0.1)


def test_the_window_is_the_services_or_the_catalogues() -> None:
    demo.load()
    row = Service.objects.get(service_id="text-model")
    row.limits = {"contextTokens": 123_456}
    save_service(SYSTEM, row)
    endpoint = list_endpoints(snapshot.current())["text-model"]
    assert (endpoint.reader.window, endpoint.reader.model) == (123_456, endpoint.target.model)


def test_the_installations_limit_is_one_revision_and_in_the_export(admin: Client) -> None:
    assert save(admin, content_text="30%").status_code == 302
    assert snapshot.current().configuration.content_text == "30%"
    assert '"contentText": "30%"' in export(FileFormat.ROUTING).text


@pytest.mark.parametrize("word", ["much", "0%", "101%", "12"])
def test_a_limit_that_cannot_be_read_is_refused(admin: Client, word: str) -> None:
    response = save(admin, content_text=word)
    assert response.status_code == 422
    assert "such as 30%." in response.content.decode()
    assert Installation.current().content_text == ""


def test_a_service_keeps_its_limit_through_its_page(admin: Client) -> None:
    demo.load()
    page = admin.get("/services/text-model/").context["form"]
    values = {name: page[name].value() for name in page.fields} | {"text": "30%"}
    posted = {name: value for name, value in values.items() if value not in (None, False)}
    assert admin.post("/services/text-model/", posted).status_code == 302
    assert Service.objects.get(service_id="text-model").content["text"] == "30%"


def test_a_routes_draft_has_its_limit() -> None:
    demo.load()
    route = snapshot.current().configuration.routes[0]
    limited = replace(route, content={"policy": "extract", "text": "30%"})
    draft = draft_of(limited, None)
    assert draft.form["text"].value() == "30%"
    assert draft.spec(limited).content == {"policy": "extract", "text": "30%"}


@pytest.mark.parametrize(
    ("path", "content"), [("contentText", None), ("routing.default.content.text", {"text": "all"})]
)
def test_a_file_with_a_limit_that_cannot_be_read_is_refused(path: str, content: Mapping[str, str] | None) -> None:
    route = {"provider": "a", **({"content": content} if content else {})}
    provider = {"providerName": "a", "apiKey": "sk-1", "endpoint": "https://a.example/v1", "defaultModel": "m"}
    file = {"providers": [provider], "routing": {"default": route}, **({} if content else {"contentText": "all"})}
    assert path in [problem.field for problem in import_files(EMPTY, [json.dumps(file)]).problems]
