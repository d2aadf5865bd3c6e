"""The last test of a provider is stored with its time, and the list begins with failing providers."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.models import Provider, ProviderTest
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import text_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def add_provider(name: str, *, enabled: bool = True, fault: str = "") -> None:
    Provider.objects.create(
        name=name, endpoint="echo://local", protocol="echo", default_model="m", key_source="none", enabled=enabled
    )
    ProviderTest.objects.create(name=name, at=timezone.now(), ms=1200, fault=fault)


def names_in(page: str) -> list[str]:
    return re.findall(r'<a href="/providers/([\w-]+)/">', page)


def test_test_result_is_stored(admin: Client) -> None:
    """The result of a provider's test is in the list and on its page until the next test replaces it."""
    admin.post("/providers/echo/test/", headers=HTMX)
    admin.post("/providers/openai/test/", headers=HTMX)
    admin.post("/providers/openai/test/", headers=HTMX)
    assert ProviderTest.objects.count() == 2
    assert ProviderTest.objects.get(name="openai").fault == "key_missing"
    assert "key_missing" in text_of(admin.get("/providers/"))
    assert "Last test:" in text_of(admin.get("/providers/echo/"))


def test_worst_provider_is_first(admin: Client) -> None:
    """Providers that cannot be called are listed first, then failed, working and disabled ones."""
    add_provider("off", enabled=False)
    add_provider("works")
    add_provider("fails", fault="http_401")
    names = names_in(text_of(admin.get("/providers/")))
    expected = ["openai", "fails", "works", "off"]
    assert [name for name in names if name in expected] == expected
    assert names_in(text_of(admin.get("/providers/?state=failed"))) == ["fails"]


@pytest.mark.parametrize(
    ("fault", "word", "state"),
    [
        ("http_401", "Refused", "rejected"),
        ("http_403", "Refused", "rejected"),
        ("http_429", "Cooling", "cooling"),
        ("connect_refused", "Unreachable", "down"),
        ("dns_error", "Unreachable", "down"),
        ("http_503", "Unreachable", "down"),
        ("http_404", "Ready", "usable"),
        ("", "Ready", "usable"),
    ],
)
def test_a_provider_has_one_state_that_agrees_with_its_last_test(
    admin: Client, fault: str, word: str, state: str
) -> None:
    """The page's heading, the list and the list's filter agree: a provider whose key was rejected is not ready."""
    add_provider("tested", fault=fault)
    page = Page(admin.get("/providers/tested/"))
    head = next(one for one in page.controls if one.attributes.get("class") == "lead")
    assert head.name.startswith(word)
    assert "tested" in names_in(text_of(admin.get(f"/providers/?state={state}&q=tested")))
    assert (state == "usable") == ("tested" in names_in(text_of(admin.get("/providers/?state=usable&q=tested"))))
