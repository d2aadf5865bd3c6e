"""Chinese pages contain no English sentences except quotations."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.models import Artifact
from capabilities.core.translatable import encode_text, translatable
from capabilities.models import Agent, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import no_key
from routing_admin.configuration.rows import read
from routing_admin.console.demo.load import record_demo_request
from routing_admin.core.fallback.chain import SKIP_SENTENCES
from routing_admin.core.fallback.errors import EXHAUSTED
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.core.fallback.table import TABLE
from routing_admin.core.files.seed_export import seed_routing
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.journal import journal
from tests.console.page import Page

UNTRANSLATED_ELEMENTS = {"code", "pre", "script", "style", "kbd", "samp", "q", "textarea", "title"}
VOID_ELEMENTS = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"}
ENGLISH = re.compile(r"(?:[A-Za-z][a-z'’]*[ ,;:]+){3,}[A-Za-z][a-z'’]*")
pages = pytest.mark.django_db(databases=["default", "logs"])


class EnglishTextParser(HTMLParser):
    """Collects the visible text of a page, except code, quotations and parts marked as English."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {key: value or "" for key, value in attrs}
        self.texts += [known[key] for key in ("title", "aria-label", "placeholder") if key in known]
        if tag not in VOID_ELEMENTS:
            quiet = (
                tag in UNTRANSLATED_ELEMENTS
                or "said" in known.get("class", "").split()
                or known.get("lang", "") == "en"
            )
            self.open.append(quiet)

    # Elements such as `<use/>` have no text.
    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID_ELEMENTS and self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.open):
            self.texts.append(data)


def find_english(page: str) -> list[str]:
    """Return runs of four or more English words in the visible text."""
    reader = EnglishTextParser()
    reader.feed(page)
    return [match for text in reader.texts for match in ENGLISH.findall(" ".join(text.split()))]


def find_english_in(answer: Any) -> list[str]:
    return find_english(answer.content.decode())


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-hans"
    return admin


def test_english_text_finder_reports_sentences_but_no_code_or_quotations() -> None:
    untranslated = '<p>The provider is disabled.</p><a title="There is nothing to see">x</a>'
    quiet = '<code>one two three four</code><q>one two three four</q><p lang="en">one two three four</p>'
    assert len(find_english(untranslated)) == 2
    assert find_english(quiet) == []


@pages
def test_every_page_of_the_demo_is_in_chinese(admin: Client) -> None:
    """Lists, detail pages, settings and the log are in Chinese. Descriptions that a user entered are exempt."""
    key = record_demo_request()
    journal().flush()
    lists = ("dashboard", "providers", "provider_new", "services", "service_new", "agents", "agent_new", "matrix")
    lists += ("routes", "artifacts", "requests", "history", "audit", "config", "settings", "users", "simulate")
    addresses = [reverse(name) for name in lists] + [reverse("request", args=[key]), reverse("route", args=["design"])]
    addresses += [reverse("service", args=[row.service_id]) for row in Service.objects.all()]
    addresses += [reverse("agent", args=[row.agent_id]) for row in Agent.objects.all()]
    addresses += [reverse("artifact", args=[row.pk]) for row in Artifact.objects.all()]
    entered = " ".join(
        [*(row.description for row in Agent.objects.all()), *(row.description for row in Service.objects.all())]
    )
    untranslated = {
        (address, text)
        for address in addresses
        for text in find_english_in(admin.get(address))
        if text not in entered and ":" not in text
    }
    assert untranslated == set()


BROKEN: dict[str, Any] = {
    "providers": [
        {"providerName": "a", "apiKey": "YOUR_API_KEY", "endpoint": "http://10.0.0.1/v1", "defaultModel": "m"},
        {"providerName": "a", "apiKey": "${HOME}", "endpoint": "ftp://x", "defaultModel": "", "enabled": "yes"},
        {"providerName": "ä", "apiKey": "a\nb", "endpoint": "https://u:p@h/", "proxy": 3, "quirks": {"x": 1}},
        {"quirks": {"system_role": 5}, "timeouts": {"connect": -1, "x": 2}, "protocol": "soap"},
        "not an object",
    ],
    "routing": {
        "planning": {
            "provider": "b",
            "temperature": 9,
            "maxTokens": "1",
            "fallback": ["a", "a", {"provider": "zz"}, 4],
            "onError": {"teapot": "next", "429": "panic"},
            "deadline": [],
            "retries": 99,
        },
        "x": [],
    },
    "defaultLanguage": "tlh",
}
SERVICES: dict[str, Any] = {
    "services": [
        {"id": "", "name": 3, "baseURL": "x", "model": "m", "apiKey": "", "capabilities": {"input": [""]}},
        {"id": "s", "name": "s", "baseURL": "https://h.example/v1", "model": "m", "apiKey": "k", "description": ""}
        | {"capabilityTags": [1], "capabilities": []},
        {"id": "s", "capabilities": {"in": []}, "capabilityTags": "x", "limits": []},
        7,
    ]
}
FILES = [
    json.dumps(BROKEN),
    json.dumps(SERVICES),
    '{"providers": 1, "providers": 2}',
    "{",
    '{"providers": NaN}',
    "[1, ]",
    "[" * 200 + "]" * 200,
    "{}",
    json.dumps({"providers": [], "routing": {}}),
]


@pages
@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
@pytest.mark.requirement("MMR-E3")
def test_import_problems_are_shown_in_chinese(admin: Client, text: str) -> None:
    answer = admin.post(reverse("config_import"), {"text": text, "name": "x.json"})
    assert answer.status_code in (200, 422)
    assert find_english_in(answer) == []


@pages
def test_seed_export_omissions_are_shown_in_chinese(admin: Client) -> None:
    """Pages show omissions in the user's language. The command always prints them in English."""
    Provider.objects.update(timeouts={"connect": 3}, proxy="none")
    snapshot.refresh()
    answer = admin.get(reverse("config") + "?for=seed")
    assert Page(answer).shows("未写入")
    assert find_english_in(answer) == []
    assert all(find_english(text) for text in seed_routing(read())[1][:1])


@pages
@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": "https://api.example.com/v1/chat/completions", "protocol": "openai"},
        {"endpoint": "http://api.example.com/v1/chat/completions", "protocol": "openai"},
        {"endpoint": "https://10.0.0.1/v1/chat/completions", "protocol": "openai"},
        {"endpoint": "https://host.example:8443/v1", "protocol": "openai"},
    ],
    ids=["no key", "plain http", "private address", "another port"],
)
def test_reasons_for_an_unusable_provider_are_shown_in_chinese(admin: Client, changes: dict[str, str]) -> None:
    row = Provider.objects.get(name="echo")
    needs_key = "api.example.com" in changes["endpoint"] and changes["endpoint"].startswith("https")
    Provider.objects.filter(pk=row.pk).update(**changes, key_source="env" if needs_key else row.key_source)
    snapshot.refresh()
    for name, args in (("provider", ["echo"]), ("providers", []), ("dashboard", []), ("route", ["design"])):
        answer = admin.get(reverse(name, args=args))
        assert answer.status_code == 200
        assert find_english_in(answer) == [], name
    tested = admin.post(reverse("provider_test", args=["echo"]), headers={"hx-request": "true"})
    assert find_english_in(tested) == []


def log_failed_request(error: str, *attempts: tuple[str, str]) -> str:
    row = RequestLog.objects.create(
        id="req_zh",
        started_at=timezone.now(),
        task_type="design",
        outcome="all_providers_failed",
        status=502,
        sentence=encode_text(error),
    )
    for position, (outcome, message) in enumerate(attempts):
        AttemptLog.objects.create(
            request=row,
            position=position,
            provider="echo",
            model=f"m{position}",
            outcome=outcome,
            sentence=encode_text(message),
            at=row.started_at,
        )
    return row.pk


FAULTS = [(fault, row.message) for fault, row in TABLE.items() if row.message]
SKIPPED = [(reason.value, sentence) for reason, sentence in SKIP_SENTENCES.items()]


@pages
def test_failed_request_is_shown_in_chinese(admin: Client) -> None:
    """The gateway's own log messages are translated with their values. A provider's message is quoted unchanged."""
    key = log_failed_request(
        translatable(EXHAUSTED, count=2, said="echo/m0: boom; echo/m1: There is no such model as that"),
        *FAULTS,
        *SKIPPED,
        ("http_404", "There is no such model as that"),
        ("key_missing", no_key("echo", "LLM_PROVIDER_ECHO_API_KEY")),
    )
    answer = admin.get(reverse("request", args=[key]))
    assert answer.status_code == 200
    assert find_english_in(answer) == []
    page = Page(answer)
    assert page.shows("There is no such model as that")
    assert page.shows("LLM_PROVIDER_ECHO_API_KEY")


@pages
def test_failed_demo_request_is_shown_in_chinese(admin: Client) -> None:
    key = record_demo_request()
    journal().flush()
    assert find_english_in(admin.get(reverse("request", args=[key]))) == []


@pages
@pytest.mark.parametrize("outcome", sorted(SCRIPTED))
def test_simulation_is_shown_in_chinese(admin: Client, outcome: str) -> None:
    chain = ["echo/echo-503", "echo/echo-vision", "echo/echo-text"]
    data: dict[str, Any] = {"act": "simulate", "preset": "seed", "enabled": "on", "version": "1", "sim-message": "好"}
    data["card"] = ["1", "2", "3"]
    for position, name in enumerate(chain, start=1):
        provider, _, model = name.partition("/")
        data |= {f"c-{position}-provider": provider, f"c-{position}-model": model, f"sim-{position}": outcome}
    answer = admin.post(reverse("route", args=["design"]), data)
    assert answer.status_code == 200
    assert answer.context["panel"].run_view is not None
    assert find_english_in(answer) == []
