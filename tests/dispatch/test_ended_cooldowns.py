"""An administrator can end a provider's cooldown in all processes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from capabilities.core.wire import Failure, Fault
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.context import RunContext
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.cooldown_resets import CooldownResets
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AuditEvent
from tests.console.visits import response_text

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
EMPTY = Failure(Fault.HTTP_402, "the balance is gone", 402)
KEY = PoolKey("first", "m1")


def exhaust(name: str) -> None:
    process_run_context().cooldowns.record_failure(name, "m", EMPTY, Policy().verdict(EMPTY))
    process_run_context().pools.record(name, KEY, EMPTY)


def set_key(name: str, key: str) -> str:
    out, stdin = StringIO(), sys.stdin
    sys.stdin = StringIO(key)
    try:
        call_command("set_provider_key", name, stdout=out)
    finally:
        sys.stdin = stdin
    return out.getvalue()


def cooling_providers() -> set[str]:
    context = process_run_context()
    with_cooling_key = {name for name in ("echo", "openai") if context.pools.look(name, KEY)}
    return {provider for (provider, _), _ in context.cooldowns.list_cooling()} | with_cooling_key


@pytest.fixture
def context(demo: None) -> Iterator[RunContext]:
    for name in ("echo", "openai"):
        exhaust(name)
    yield process_run_context()
    renew(process_run_context)


@pytest.mark.parametrize(("providers", "remaining"), [((), set()), (("openai",), {"echo"})])
def test_try_again_command_ends_cooldowns_of_all_or_given_providers_and_is_audited(
    context: RunContext, providers: tuple[str, ...], remaining: set[str]
) -> None:
    out = StringIO()
    call_command("try_again", *providers, stdout=out)
    assert "openai" in out.getvalue()
    assert cooling_providers() == remaining
    event = AuditEvent.objects.get(action="provider.try_again")
    assert "openai" in event.details["providers"]


def test_try_again_command_rejects_an_unknown_provider_and_lists_known_ones(context: RunContext) -> None:
    with pytest.raises(CommandError, match=r"There is no provider unknown\. There are: .*openai"):
        call_command("try_again", "unknown")
    assert cooling_providers() == {"echo", "openai"}


def test_cooldown_reset_is_applied_once_in_another_process(context: RunContext) -> None:
    """Other processes learn of the cooldown reset from the audit log. Failures after the reset count again."""
    snapshot.refresh()
    other_process = CooldownResets()
    other_process.look()
    call_command("try_again", "openai", stdout=StringIO())
    exhaust("openai")
    other_process.look()
    assert cooling_providers() == {"echo"}
    exhaust("openai")
    other_process.look()
    assert cooling_providers() == {"echo", "openai"}


def test_cooldown_resets_are_queried_only_after_a_change(
    context: RunContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    snapshot.refresh()
    other_process = CooldownResets()
    other_process.look()
    for using in ("default", "logs"):
        with django_assert_num_queries(0, using=using):
            other_process.look()
    renew(snapshot.newest)
    other_process.look()
    assert cooling_providers() == {"echo", "openai"}


def test_new_provider_key_ends_only_the_cooldown_of_its_provider(context: RunContext) -> None:
    snapshot.refresh()
    other_process = CooldownResets()
    other_process.look()
    set_key("openai", "sk-another-key-0123456789")
    other_process.look()
    assert cooling_providers() == {"echo"}


def test_provider_key_is_read_from_standard_input_and_never_printed(
    demo: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A provider's first key can be set from standard input, without a browser."""
    output = set_key("openai", "sk-another-key-0123456789\n")
    assert "openai is now called with the key …6789" in output
    assert snapshot.current().keys["openai"].value == "sk-another-key-0123456789"
    assert "another" not in output + capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "key", "sentence"),
    [("unknown", "sk-1", "There is no provider unknown"), ("openai", " \n", "No key on standard input")],
)
def test_set_key_command_rejects_an_invalid_key_or_provider(demo: None, name: str, key: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        set_key(name, key)


def test_dashboard_lists_and_ends_cooldowns(context: RunContext, admin: Client) -> None:
    page = response_text(admin.get(reverse("dashboard")))
    assert "2 models are cooling down" in page
    assert re.search(r"is cooling down for 6\d\d s after http_402", page)
    answer = admin.post(reverse("providers_try_again"), follow=True)
    assert "openai" in answer.content.decode()
    assert cooling_providers() == set()


def test_only_administrators_can_end_a_cooldown(context: RunContext, viewer: Client) -> None:
    html = viewer.get(reverse("dashboard")).content.decode()
    assert "is cooling down for" in html
    assert "Try again now" not in html
