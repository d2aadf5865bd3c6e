"""A provider that is left alone is tried again at once where somebody says so: here, and in every other process."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from capabilities.core.wire import Failure, Fault
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.context import RunContext
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.cooldown_resets import CooldownResets
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AuditEvent
from tests.console.visits import text_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
EMPTY = Failure(Fault.HTTP_402, "the balance is gone", 402)
KEY = PoolKey("first", "m1")


def empty(name: str) -> None:
    """The account of a provider has no money, says it to every key."""
    process_run_context().cooldowns.record_failure(name, "m", EMPTY, Policy().verdict(EMPTY))
    process_run_context().pools.record(name, KEY, EMPTY)


def set_key(name: str, key: str) -> str:
    """What `set_provider_key` says of a key on its standard input."""
    out, stdin = StringIO(), sys.stdin
    sys.stdin = StringIO(key)
    try:
        call_command("set_provider_key", name, stdout=out)
    finally:
        sys.stdin = stdin
    return out.getvalue()


def resting() -> set[str]:
    """Who is left alone, and whose key rests."""
    context = process_run_context()
    rests = {name for name in ("echo", "openai") if context.pools.look(name, KEY)}
    return {provider for (provider, _), _ in context.cooldowns.list_cooling()} | rests


@pytest.fixture
def context(demo: None) -> Iterator[RunContext]:
    """This process's memory, with two providers that are left alone."""
    for name in ("echo", "openai"):
        empty(name)
    yield process_run_context()
    renew(process_run_context)


@pytest.mark.parametrize(("words", "left"), [((), set()), (("openai",), {"echo"})])
def test_a_command_ends_cooldowns_and_the_audit_log_names_whose(
    context: RunContext, words: tuple[str, ...], left: set[str]
) -> None:
    """Of all providers, or of those named: candidates and keys alike."""
    out = StringIO()
    call_command("try_again", *words, stdout=out)
    assert "openai" in out.getvalue()
    assert resting() == left
    event = AuditEvent.objects.get(action="provider.try_again")
    assert "openai" in event.details["providers"]


def test_a_name_that_no_provider_has_is_refused_in_a_line(context: RunContext) -> None:
    """The sentence says who there is, and nothing is forgotten."""
    with pytest.raises(CommandError, match=r"There is no provider nobody\. There are: .*openai"):
        call_command("try_again", "nobody")
    assert resting() == {"echo", "openai"}


def test_another_process_hears_of_it_once(context: RunContext) -> None:
    """By the audit log, when the installation has changed; what it finds later is its own."""
    snapshot.refresh()
    elsewhere = CooldownResets()
    elsewhere.look()
    call_command("try_again", "openai", stdout=StringIO())
    empty("openai")
    elsewhere.look()
    assert resting() == {"echo"}
    empty("openai")
    elsewhere.look()
    assert resting() == {"echo", "openai"}


def test_a_provider_with_another_key_is_tried_at_once(context: RunContext) -> None:
    """Whoever gives it a new key need not say more; others stay left alone."""
    snapshot.refresh()
    elsewhere = CooldownResets()
    elsewhere.look()
    set_key("openai", "sk-another-key-0123456789")
    elsewhere.look()
    assert resting() == {"echo"}


def test_a_key_is_given_on_standard_input_and_never_told(demo: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The first key of a provider, without a browser; who and when stand in the history."""
    said = set_key("openai", "sk-another-key-0123456789\n")
    assert "openai is now called with the key …6789" in said
    assert snapshot.current().keys["openai"].value == "sk-another-key-0123456789"
    assert "another" not in said + capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "key", "sentence"),
    [("nobody", "sk-1", "There is no provider nobody"), ("openai", " \n", "No key on standard input")],
)
def test_a_key_that_cannot_be_given_is_refused_in_a_line(demo: None, name: str, key: str, sentence: str) -> None:
    """Nothing is changed."""
    with pytest.raises(CommandError, match=sentence):
        set_key(name, key)


def test_the_dashboard_says_who_is_left_alone_and_has_it_tried_again(context: RunContext, admin: Client) -> None:
    """With the seconds and the fault; one button for all who stand there."""
    page = text_of(admin.get(reverse("dashboard")))
    assert re.search(r"openai is cooling down for 6\d\d s after http_402", page)
    answer = admin.post(reverse("providers_try_again"), {"name": ["openai", "echo"]}, follow=True)
    assert "openai" in answer.content.decode()
    assert resting() == set()


def test_a_viewer_sees_it_and_has_no_button(context: RunContext, viewer: Client) -> None:
    """Trying again is an administrator's."""
    html = viewer.get(reverse("dashboard")).content.decode()
    assert "is cooling down for" in html
    assert "Try again now" not in html
