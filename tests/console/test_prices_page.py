"""A service's page shows prices from lists and administrators. A request's page and the API show the request's cost."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Attempt, Try
from routing_admin.core.files.llmservices import write_service
from routing_admin.limits.prices.listed import SOURCE
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from tests.cast import AgentProgram
from tests.console.page import Control, Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
PRICE_FORM = {"price-currency": "cny", "price-input": "2", "price-output": "8.5", "price-cacheRead": "0.4"}


def make_service(endpoint: str = "https://api.openai.com/v1", model: str = "gpt-4o") -> Service:
    provider = Provider.objects.create(name="host", endpoint=endpoint, default_model=model, key_source="none")
    return Service.objects.create(service_id="svc", name="svc", provider=provider, model=model)


def price_region(admin: Client) -> Control:
    return Page(admin.get("/services/svc/")).region("Price")


def save(admin: Client, row: Service, **price: str) -> Page:
    facts = {
        "name": row.name,
        "provider": row.provider.name,
        "model": row.model,
        "version": row.version,
        "enabled": "on",
    }
    return Page(
        admin.post("/services/svc/", {**facts, "policy": "", "tags": "", "limits_json": "", **price}, follow=True)
    )


def test_listed_price_is_shown_with_the_source(admin: Client) -> None:
    make_service()
    assert price_region(admin).shows("Listed: 2.5 in, 10 out (USD; genai-prices 0.")


CONTESTED = (
    f"{SOURCE} (Input 2, Output 5, USD), LiteLLM 1.109.1 (Input 1.5, Output 7.5, USD), "
    f"models.dev 2026-08-18 (Input 2, Output 5, USD); {SOURCE} counts"
)
IN_CHINESE = (
    f"{SOURCE} (输入 2、输出 5、USD)、LiteLLM 1.109.1 (输入 1.5、输出 7.5、USD)、"
    f"models.dev 2026-08-18 (输入 2、输出 5、USD)；采用 {SOURCE}"
)


@pytest.mark.parametrize(("language", "sentence"), [("en", CONTESTED), ("zh-hans", IN_CHINESE)])
def test_contested_price_is_shown_with_the_amounts_of_every_price_list(
    admin: Client, language: str, sentence: str
) -> None:
    row = make_service("https://api.mistral.ai/v1", "magistral-medium-latest")
    snapshot.refresh()
    facts = RequestFacts("req_cost", timezone.now(), "v1", agent="text-agent", usage=Usage(1000, 100))
    write([build_entry(facts, (Attempt("host", row.model, "ok"),))])
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    badge = {"en": "Contested", "zh-hans": "有争议"}[language]
    price = Page(admin.get("/services/svc/")).region({"en": "Price", "zh-hans": "价格"}[language])
    assert price.shows(sentence)
    assert price.shows(badge)
    cost = Page(admin.get("/requests/req_cost/")).fact({"en": "Cost", "zh-hans": "费用"}[language])
    assert cost.shows("0.0025 USD")
    assert cost.shows(sentence)
    assert cost.shows(badge)
    save(admin, row, **PRICE_FORM)
    snapshot.refresh()
    assert not Page(admin.get("/requests/req_cost/")).shows(sentence)


def test_agreeing_price_lists_are_named(admin: Client) -> None:
    make_service("https://api.openai.com/v1", "gpt-4o")
    assert price_region(admin).shows(f"{SOURCE}, LiteLLM 1.109.1, models.dev 2026-08-18 agree")
    assert not price_region(admin).shows("Contested")


def test_price_of_an_unlisted_model_is_unknown(admin: Client) -> None:
    make_service("http://127.0.0.1:9/v1", "mine")
    assert price_region(admin).shows("No price list covers this model.")


def test_administrator_price_is_stored_exported_and_shown(admin: Client) -> None:
    row = make_service()
    save(admin, row, **PRICE_FORM)
    price = {"currency": "CNY", "input": 2, "output": 8.5, "cacheRead": 0.4}
    assert Service.objects.get(pk=row.pk).price == price
    configuration = snapshot.current().configuration
    spec, provider = configuration.service_at("host", "gpt-4o"), configuration.provider("host")
    assert spec is not None
    assert provider is not None
    assert write_service(spec, provider)["price"] == price
    output = price_region(admin).field("Output")
    assert output
    assert output.value == "8.5"


def test_empty_price_fields_restore_the_listed_price(admin: Client) -> None:
    row = make_service()
    save(admin, row, **PRICE_FORM)
    save(admin, Service.objects.get(pk=row.pk), **dict.fromkeys(PRICE_FORM, ""))
    assert Service.objects.get(pk=row.pk).price == {}


@pytest.mark.parametrize(
    ("fields", "label", "sentence"),
    [
        ({"price-currency": ""}, "Currency", "price.currency is missing."),
        ({"price-currency": "¥"}, "Currency", "three capital letters"),
        ({"price-output": ""}, "Output", "price.output is missing."),
        ({"price-input": "-1"}, "Input", "At least 0."),
    ],
)
def test_invalid_price_is_reported_at_the_field(
    admin: Client, fields: dict[str, str], label: str, sentence: str
) -> None:
    row = make_service()
    assert sentence in save(admin, row, **{**PRICE_FORM, **fields}).region("Price").error(label)
    assert Service.objects.get(pk=row.pk).price == {}


def test_each_attempt_shows_its_cost_even_if_failed(admin: Client, text_agent: AgentProgram) -> None:
    make_service()
    snapshot.refresh()
    failed_try = Try(0.0, 5.0, "empty_content", 200, usage=Usage(1000, 0))
    facts = RequestFacts("req_cost", timezone.now(), "v1", agent="text-agent", usage=Usage(1000, 100))
    write(
        [
            build_entry(
                facts,
                (Attempt("host", "gpt-4o", "empty_content", tries=(failed_try,)), Attempt("host", "gpt-4o", "ok")),
            )
        ]
    )
    page = Page(admin.get("/requests/req_cost/"))
    assert page.shows("1000 in, 0 out")
    assert page.fact("Cost").shows("plus 0.0025 USD for calls without an answer")
    first, last = text_agent.get("/requests/req_cost").json()["attempts"]
    assert (first["usage"], first["cost"]) == (
        {"promptTokens": 1000, "completionTokens": 0},
        {"amount": "0.0025", "currency": "USD"},
    )
    assert last["cost"] == {"amount": "0.0035", "currency": "USD"}


def test_request_cost_is_shown_with_the_cache_savings(admin: Client, text_agent: AgentProgram) -> None:
    make_service()
    snapshot.refresh()
    facts = RequestFacts(
        "req_cost", timezone.now(), "v1", agent="text-agent", usage=Usage(1000, 100, cached_tokens=400)
    )
    write([build_entry(facts, (Attempt("host", "gpt-4o", "ok"),))])
    cost = Page(admin.get("/requests/req_cost/")).fact("Cost")
    assert cost.shows("0.003 USD")
    assert cost.shows("the cache saved 0.0005 USD")
    cost = text_agent.get("/requests/req_cost").json()["cost"]
    assert cost == {"amount": "0.003", "saved": "0.0005", "currency": "USD"}
