"""Settings for how much text of a file a model receives, and for the form in which it receives web pages.

They can be set for the installation, a service and a route. The most specific setting applies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from django.test import Client
from test_settings_page import save

from capabilities.actors import SYSTEM
from capabilities.core.delivery.reader import Reader
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.errors import InvalidError
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.exports import export
from routing_admin.console.demo import load as demo
from routing_admin.console.routes.draft import build_draft
from routing_admin.console.services.actions import save_service
from routing_admin.console.settings.actions import set_content_html, set_content_text
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.files.exporting import FileFormat
from routing_admin.core.files.importing import import_files
from routing_admin.dispatch.model_endpoints import endpoint_at, list_endpoints
from routing_admin.models import Installation
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def model_reader(service_id: str, route: Mapping[str, str] | None = None) -> Reader:
    state = snapshot.current()
    service = state.configuration.service(service_id)
    assert service is not None
    provider = state.configuration.provider(service.provider)
    assert provider is not None
    return endpoint_at(state, provider, service.model, service=service, content=route).reader


def effective_limit(service_id: str, route: Mapping[str, str] | None = None) -> TextLimit:
    return model_reader(service_id, route).text_limit


def test_most_specific_text_limit_applies() -> None:
    demo.load()
    assert effective_limit("text-model") == TextLimit()
    set_content_text(SYSTEM, "30%")
    assert effective_limit("text-model") == TextLimit(share=0.3)
    row = Service.objects.get(service_id="text-model")
    row.content = {"text": "200000"}
    save_service(SYSTEM, row)
    assert effective_limit("text-model") == TextLimit(chars=200_000)
    assert effective_limit("text-model", {"policy": "describe"}) == TextLimit(chars=200_000)
    assert effective_limit("text-model", {"text": "10%"}) == TextLimit(share=0.1)


def test_most_specific_web_page_format_applies() -> None:
    demo.load()
    assert not model_reader("text-model").html_source
    set_content_html(SYSTEM, "source")
    assert model_reader("text-model").html_source
    row = Service.objects.get(service_id="text-model")
    row.content = {"html": "words"}
    save_service(SYSTEM, row)
    assert not model_reader("text-model").html_source
    assert model_reader("text-model", {"html": "source"}).html_source


def test_context_window_of_a_service_overrides_the_catalogue_value() -> None:
    demo.load()
    row = Service.objects.get(service_id="text-model")
    row.limits = {"contextTokens": 123_456}
    save_service(SYSTEM, row)
    endpoint = list_endpoints(snapshot.current())["text-model"]
    assert (endpoint.reader.window, endpoint.reader.model) == (123_456, endpoint.target.model)


def test_installation_text_limit_is_saved_as_one_revision_and_exported(admin: Client) -> None:
    assert save(admin, content_text="30%", content_html="source").status_code == 302
    configuration = snapshot.current().configuration
    assert (configuration.content_text, configuration.content_html) == ("30%", "source")
    text = export(FileFormat.ROUTING).text
    assert '"contentText": "30%"' in text
    assert '"contentHtml": "source"' in text


@pytest.mark.parametrize("limit", ["much", "0%", "101%", "12"])
def test_invalid_text_limit_is_rejected(admin: Client, limit: str) -> None:
    response = save(admin, content_text=limit)
    assert response.status_code == 422
    fields = [control.attributes["id"] for control in Page(response).controls if "aria-invalid" in control.attributes]
    assert fields == ["id_content_text"]
    assert "such as 30%." in Page(response).alert
    assert Installation.current().content_text == ""


def test_unknown_web_page_format_is_rejected() -> None:
    with pytest.raises(InvalidError):
        set_content_html(SYSTEM, "markdown")
    assert Installation.current().content_html == ""


def test_service_page_saves_text_limit_and_web_page_format(admin: Client) -> None:
    demo.load()
    page = admin.get("/services/text-model/").context["form"]
    values = {name: page[name].value() for name in page.fields} | {"text": "30%", "html": "source"}
    posted = {name: value for name, value in values.items() if value not in (None, False)}
    assert admin.post("/services/text-model/", posted).status_code == 302
    content = Service.objects.get(service_id="text-model").content
    assert (content["text"], content["html"]) == ("30%", "source")


def test_route_draft_contains_text_limit_and_web_page_format() -> None:
    demo.load()
    route = snapshot.current().configuration.routes[0]
    limited = replace(route, content={"policy": "extract", "text": "30%", "html": "source"})
    draft = build_draft(limited, None)
    assert draft.form["text"].value() == "30%"
    assert draft.form["html"].value() == "source"
    assert draft.spec(limited).content == {"policy": "extract", "text": "30%", "html": "source"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("contentText", None),
        ("contentHtml", None),
        ("routing.default.content.text", {"text": "all"}),
        ("routing.default.content.html", {"html": "all"}),
    ],
)
def test_configuration_file_with_an_invalid_text_limit_is_rejected(
    path: str, content: Mapping[str, str] | None
) -> None:
    route = {"provider": "a", **({"content": content} if content else {})}
    provider = {"providerName": "a", "apiKey": "sk-1", "endpoint": "https://a.example/v1", "defaultModel": "m"}
    file = {
        "providers": [provider],
        "routing": {"default": route},
        **({} if content else {"contentText": "all", "contentHtml": "all"}),
    }
    assert path in [problem.field for problem in import_files(EMPTY, [json.dumps(file)]).problems]
