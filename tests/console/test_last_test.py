"""A provider's last test is stored with its time, and the list of providers begins with failing ones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from capabilities.actors import SYSTEM
from capabilities.core.wire import Failure, Fault
from capabilities.labels import BADGES
from capabilities.models import Provider, ProviderTest
from routing_admin.configuration import snapshot
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.providers.listing import STATES
from routing_admin.console.providers.rules import BADGES_BY_SEVERITY, derive_state
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.model_endpoints import KeyNote
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import Candidate, TaskRoute
from routing_admin.request_log.health import Sample, judge
from tests.cast import HTMX, create_token
from tests.console.page import Page

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def add_provider(name: str, *, enabled: bool = True, fault: str = "") -> None:
    Provider.objects.create(
        name=name, endpoint="echo://local", protocol="echo", default_model="m", key_source="none", enabled=enabled
    )
    ProviderTest.objects.create(name=name, at=timezone.now(), ms=1200, fault=fault)


def listed_providers(page: Page) -> list[str]:
    return [url.split("/")[2] for url in page.link_urls if re.fullmatch(r"/providers/[\w-]+/", url)]


def test_connection_test_result_is_stored(admin: Client) -> None:
    admin.post("/providers/echo/test/", headers=HTMX)
    admin.post("/providers/openai/test/", headers=HTMX)
    admin.post("/providers/openai/test/", headers=HTMX)
    assert ProviderTest.objects.count() == 2
    assert ProviderTest.objects.get(name="openai").fault == "key_missing"
    add_provider("refusing", fault="http_401")
    cell = Page(admin.get("/providers/")).control
    assert cell("tested-refusing").name.startswith("The provider rejects the key")
    assert cell("tested-openai").name == ""
    assert Page(admin.get("/providers/echo/")).shows("Last test:")


def test_provider_list_begins_with_the_worst_provider(admin: Client) -> None:
    add_provider("off", enabled=False)
    add_provider("works")
    add_provider("fails", fault="http_401")
    names = listed_providers(Page(admin.get("/providers/")))
    expected = ["fails", "openai", "works", "off"]
    assert [name for name in names if name in expected] == expected
    assert listed_providers(Page(admin.get("/providers/?state=failed"))) == ["fails"]


@pytest.mark.parametrize(
    ("fault", "label", "state"),
    [
        ("http_401", "Key rejected", "rejected"),
        ("http_402", "Key rejected", "rejected"),
        ("http_403", "Key rejected", "rejected"),
        ("http_429", "Failing", "failing"),
        ("http_404", "Failing", "failing"),
        ("http_400", "Failing", "failing"),
        ("http_503", "Failing", "failing"),
        ("connect_refused", "Unreachable", "down"),
        ("dns_error", "Unreachable", "down"),
        ("read_timeout", "Unreachable", "down"),
        ("key_missing", "Ready", "ok"),
        ("", "Ready", "ok"),
    ],
)
def test_provider_state_follows_the_last_test_on_all_pages_and_in_the_api(
    admin: Client, fault: str, label: str, state: str
) -> None:
    """A test that failed because there was no key is ignored once a key has been entered."""
    add_provider("tested", fault=fault)
    assert read_state_everywhere(admin, "tested") == (label, state)


def read_state_everywhere(admin: Client, name: str) -> tuple[str, str]:
    """Return the label and code of a provider's state, after checking that all pages and the API agree."""
    snapshot.refresh()
    page, tile = Page(admin.get(f"/providers/{name}/")), Page(admin.get("/")).control(f"provider-{name}")
    lead = next(control for control in page.controls if control.attributes.get("class") == "lead").name
    labels = [str(BADGES[badge][2]) for badge in BADGES_BY_SEVERITY]
    label = next(label for label in labels if lead.startswith(label))
    assert tile
    assert label in tile.name
    token = create_token(User.objects.get(username="admin"), name=f"token {timezone.now()}")
    answer = Client().get(f"/api/v1/admin/providers/{name}", headers={"authorization": f"Bearer {token}"})
    state = str(answer.json()["state"])
    found = {code for code in STATES if name in listed_providers(Page(admin.get(f"/providers/?state={code}&q={name}")))}
    assert found - {"failed", "stopped"} == {state}
    assert ("stopped" in found) == (state not in ("ok", "slow", "disabled"))
    return label, state


def test_provider_with_all_models_in_cooldown_is_shown_as_cooling_everywhere(admin: Client) -> None:
    """Cooldowns take precedence over tests and calls, unless a route can call another model of the provider."""
    add_provider("two", fault="http_401")
    route, provider = TaskRoute.objects.create(task_type="new", position=90), Provider.objects.get(name="two")
    for position, model in enumerate(("a", "b"), start=1):
        Candidate.objects.create(route=route, position=position, provider=provider, model=model)
    start_cooldown("two", "a")
    assert read_state_everywhere(admin, "two") == ("Key rejected", "rejected")
    start_cooldown("two", "b")
    assert read_state_everywhere(admin, "two") == ("Cooling", "cooling")
    process_run_context().cooldowns.forget("two")
    assert read_state_everywhere(admin, "two") == ("Key rejected", "rejected")


def test_provider_with_a_forbidden_address_has_a_separate_state(admin: Client, settings: Any) -> None:
    add_provider("inner")
    Provider.objects.filter(name="inner").update(endpoint="http://10.0.0.1/v1", protocol="openai")
    settings.ALLOWED_ORIGINS = ""
    assert read_state_everywhere(admin, "inner") == ("Address not allowed", "not_allowed")


def test_successful_old_test_has_no_badge_if_the_state_is_worse(admin: Client) -> None:
    """Until the provider is ready again, the test's time is shown without a badge."""
    add_provider("old")

    def badges() -> list[str]:
        cell = Page(admin.get("/providers/?q=old")).control("tested-old")
        assert [control for control in cell.controls if control.tag == "time"]
        return [control.tone for control in cell.controls if "badge" in (control.attributes.get("class") or "").split()]

    assert badges() == ["ok"]
    start_cooldown("old", "m")
    route = TaskRoute.objects.create(task_type="old", position=90)
    Candidate.objects.create(route=route, position=1, provider=Provider.objects.get(name="old"), model="m")
    snapshot.refresh()
    assert badges() == []


def start_cooldown(provider: str, model: str) -> None:
    failure = Failure(Fault.HTTP_429, "", 429, retry_after=60)
    process_run_context().cooldowns.record_failure(provider, model, failure, Policy().verdict(failure))


MINUTES = st.integers(0, 59)


@given(test=MINUTES, answer=st.none() | MINUTES, failure=st.none() | MINUTES)
def test_provider_state_follows_the_newer_of_test_and_calls(test: int, answer: int | None, failure: int | None) -> None:
    """A failed test counts until a call is answered. A successful test takes precedence over earlier failed calls."""
    calls = [
        Sample(minutes_before_now(ago), outcome, 1)
        for ago, outcome in ((answer, OK), (failure, "http_500"))
        if ago is not None
    ]
    health = judge(sorted(calls, key=lambda call: call.at, reverse=True), NOW)

    def state(outcome: str) -> str:
        return derive_state(
            is_enabled=True, key=KeyNote("stored"), test=Sample(minutes_before_now(test), outcome, 1), health=health
        ).name

    is_answered_since = answer is not None and answer <= test
    assert state("http_401") == ("rejected" if not is_answered_since else "ok")
    only_failed = failure is not None and answer is None
    assert state(OK) == ("failing" if only_failed and failure <= test else "ok")


def minutes_before_now(ago: int) -> datetime:
    return NOW - timedelta(minutes=ago)


def test_saving_a_provider_discards_the_last_test_result(admin: Client) -> None:
    add_provider("fixed", fault="http_404")
    row = Provider.objects.get(name="fixed")
    save_provider(SYSTEM, row)
    assert read_state_everywhere(admin, "fixed") == ("Ready", "ok")
