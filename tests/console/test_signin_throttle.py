"""Throttling of sign-ins: how many failures are allowed, whom the limit affects, and what is recorded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.models import AuditEvent, SignInAttempt
from routing_admin.platform.auth import throttle
from routing_admin.platform.auth.addresses import client_address, client_network
from routing_admin.platform.auth.throttle import (
    ADDRESS,
    NAME_AND_ADDRESS,
    Limit,
    digest_name,
    seconds_to_wait,
)
from tests.cast import open_browser
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
PASSWORD = "correct horse battery staple"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ADDRESS_A, ADDRESS_B = "198.51.100.7", "203.0.113.9"


# Most of a sign-in's time is password hashing, so the tests count hashes instead of measuring the time.
class CountingHasher(MD5PasswordHasher):
    algorithm = "counting"
    count = 0

    def encode(self, password: str, salt: str) -> str:
        CountingHasher.count += 1
        return super().encode(password, salt)


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password=PASSWORD)


def sign_in(name: str, password: str, address: str = ADDRESS_A) -> Any:
    return Client(REMOTE_ADDR=address).post("/login/", {"username": name, "password": password, "next": "/users/"})


def fail_to_sign_in(name: str, times: int, address: str = ADDRESS_A) -> list[int]:
    return [sign_in(name, "wrong", address).status_code for _ in range(times)]


@pytest.mark.usefixtures("alice")
def test_correct_password_is_throttled_after_five_failures() -> None:
    assert fail_to_sign_in("alice", 5) == [200] * 5
    refused = sign_in("alice", PASSWORD)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 900
    sentence = "Too many failed attempts to sign in from this address. Wait 15 minutes, then try again."
    assert sentence in Page(refused).alert
    assert "_auth_user_id" not in refused.client.session


@pytest.mark.usefixtures("alice")
def test_throttled_sign_in_form_keeps_the_user_name_but_not_the_password() -> None:
    fail_to_sign_in("alice", 5)
    answer = sign_in("alice", PASSWORD)
    name = Page(answer).field("User name")
    assert name
    assert name.value == "alice"
    assert PASSWORD not in answer.content.decode()


@pytest.mark.usefixtures("alice")
def test_throttled_ip_address_does_not_block_other_addresses() -> None:
    """Failures from one IP address must not lock the administrator out everywhere."""
    fail_to_sign_in("alice", 6)
    assert sign_in("alice", PASSWORD, ADDRESS_B).status_code == 302


def test_ip_address_is_throttled_after_fifty_failures_per_hour_with_any_names(alice: User) -> None:
    for group in range(10):
        assert fail_to_sign_in(f"user{group}", 5) == [200] * 5
    assert sign_in("alice", PASSWORD).status_code == 429
    assert sign_in("alice", PASSWORD, ADDRESS_B).status_code == 302


@pytest.mark.usefixtures("alice")
def test_throttled_sign_in_is_allowed_again_after_fifteen_minutes() -> None:
    fail_to_sign_in("alice", 6)
    for row in SignInAttempt.objects.all():
        row.at -= NAME_AND_ADDRESS.window
        row.save()
    assert sign_in("alice", PASSWORD).status_code == 302


@pytest.mark.usefixtures("alice")
def test_successful_sign_in_resets_only_failures_of_the_same_name_and_address() -> None:
    fail_to_sign_in("alice", 4)
    fail_to_sign_in("bob", 4)
    assert sign_in("alice", PASSWORD).status_code == 302
    assert fail_to_sign_in("alice", 5) == [200] * 5
    assert fail_to_sign_in("bob", 2) == [200, 429]


@pytest.mark.parametrize("name", ["alice", "unknown", "left"])
def test_failed_sign_in_computes_one_hash_for_known_unknown_and_deactivated_names(
    alice: User, settings: Any, name: str
) -> None:
    """The time of a failed sign-in therefore does not reveal who has an account."""
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    alice.set_password(PASSWORD)
    alice.save()
    User.objects.create_user("left", password=PASSWORD, is_active=False)
    CountingHasher.count = 0
    assert sign_in(name, "wrong").status_code == 200
    assert CountingHasher.count == 1


def test_throttled_sign_in_computes_no_password_hash(alice: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    fail_to_sign_in("alice", 5)
    CountingHasher.count = 0
    fail_to_sign_in("alice", 3)
    assert CountingHasher.count == 0


def test_failed_and_successful_sign_ins_are_audited(alice: User) -> None:
    """An unknown name is not stored, because it may be a password that was typed into the wrong field."""
    fail_to_sign_in("alice", 1)
    fail_to_sign_in("hunter2-my-password", 1, ADDRESS_B)
    sign_in("alice", PASSWORD)
    events = [(event.action, event.object_name, event.address) for event in AuditEvent.objects.order_by("id")]
    assert events == [
        ("user.sign_in_failed", "alice", ADDRESS_A),
        ("user.sign_in_failed", "", ADDRESS_B),
        ("user.sign_in", "alice", ADDRESS_A),
    ]
    stored_names = list(SignInAttempt.objects.values_list("name", flat=True))
    assert not any("hunter2" in name for name in stored_names)


def test_sign_out_is_audited(alice: User) -> None:
    client = open_browser(alice)
    for _ in range(2):
        client.post("/logout/", REMOTE_ADDR=ADDRESS_A)
    events = AuditEvent.objects.filter(action="user.sign_out").values_list("actor", "object_name", "address")
    assert list(events) == [("alice", "alice", ADDRESS_A)]
    assert client.get("/").status_code == 302


def test_empty_sign_in_form_does_not_count_as_a_failure() -> None:
    assert sign_in("alice", "").status_code == 200
    assert not SignInAttempt.objects.exists()


def test_sign_in_attempt_is_counted_before_the_password_is_checked() -> None:
    """If attempts were counted after the check, simultaneous attempts could exceed the limit."""
    assert [throttle.enter("alice", ADDRESS_A, NOW) for _ in range(5)] == [0] * 5
    assert throttle.enter("alice", ADDRESS_A, NOW) == 900
    throttle.leave("alice", ADDRESS_A)
    assert throttle.enter("alice", ADDRESS_A, NOW) == 0


@pytest.mark.django_db(transaction=True)
def test_only_five_of_many_simultaneous_sign_in_attempts_are_checked() -> None:
    """Attempts are counted in the database, so the limit holds for simultaneous attempts over several connections."""

    def enter(_: int) -> int:
        try:
            return throttle.enter("alice", ADDRESS_A, NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(12) as pool:
        waits = list(pool.map(enter, range(12)))
    assert waits.count(0) == NAME_AND_ADDRESS.failures


def test_sign_in_attempts_older_than_every_window_are_deleted() -> None:
    for minutes in range(5):
        throttle.enter(f"user{minutes}", ADDRESS_A, NOW + timedelta(minutes=minutes))
    throttle.enter("alice", ADDRESS_B, NOW + ADDRESS.window + timedelta(minutes=10))
    assert SignInAttempt.objects.count() == 1


MOMENTS = st.lists(st.integers(0, 4000).map(lambda ago: NOW - timedelta(seconds=ago)), max_size=60)


@given(MOMENTS)
def test_throttled_sign_in_wait_is_minimal_and_sufficient(failed: list[datetime]) -> None:
    limit = Limit(5, timedelta(minutes=15))
    wait = seconds_to_wait(failed, limit, NOW)
    assert 0 <= wait <= 900
    assert seconds_to_wait(failed, limit, NOW + timedelta(seconds=wait)) == 0
    assert wait == 0 or seconds_to_wait(failed, limit, NOW + timedelta(seconds=wait - 1)) > 0


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("198.51.100.7", "198.51.100.7", True),
        ("198.51.100.7", "198.51.100.8", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:198.51.100.7", "198.51.100.7", True),
        ("", "", True),
    ],
)
def test_ipv6_addresses_are_throttled_by_64_bit_prefix(first: str, second: str, same: bool) -> None:
    """An Internet subscriber can choose any address within a /64 network."""
    assert (client_network(first) == client_network(second)) is same


@pytest.mark.parametrize(
    ("forwarded", "proxies", "address"),
    [
        ("", 0, "192.0.2.1"),
        ("203.0.113.9", 0, "192.0.2.1"),
        ("203.0.113.9", 1, "203.0.113.9"),
        ("10.9.9.9, 203.0.113.9", 1, "203.0.113.9"),
        ("10.9.9.9, 203.0.113.9, 198.51.100.2", 2, "203.0.113.9"),
        ("203.0.113.9", 2, "192.0.2.1"),
    ],
)
def test_only_x_forwarded_for_entries_added_by_trusted_proxies_are_used(
    forwarded: str, proxies: int, address: str
) -> None:
    assert client_address({"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": forwarded}, proxies) == address


@pytest.mark.usefixtures("alice")
def test_clients_behind_a_trusted_proxy_are_throttled_separately(settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    form = {"username": "alice", "password": "wrong", "next": "/users/"}
    for _ in range(6):
        last = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.9").post("/login/", form)
    assert last.status_code == 429
    other_client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.10")
    assert other_client.post("/login/", {**form, "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize("spelling", ["Alice", "ALICE", "ａｌｉｃｅ"])
def test_spellings_of_a_user_name_are_throttled_together(spelling: str) -> None:
    """Writing a name in another case or in full-width letters does not evade the limit."""
    assert digest_name(spelling) == digest_name("alice")


def test_changing_a_password_is_throttled_like_signing_in(alice: User) -> None:
    """Otherwise, a stolen session could be used to guess the password faster."""
    client, new = open_browser(alice), "violet umbrella quarterly sonnet"

    def change(old: str) -> Any:
        form = {"old_password": old, "new_password1": new, "new_password2": new}
        return client.post("/password/", form, REMOTE_ADDR=ADDRESS_A)

    assert [change("wrong").status_code for _ in range(5)] == [422] * 5
    refused = change(PASSWORD)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 900
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)
    assert sign_in("alice", PASSWORD).status_code == 429
    assert sign_in("alice", PASSWORD, ADDRESS_B).status_code == 302


def test_correct_old_password_does_not_count_as_a_failure(alice: User) -> None:
    form = {"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}
    client = open_browser(alice)
    assert [client.post("/password/", form, REMOTE_ADDR=ADDRESS_A).status_code for _ in range(6)] == [422] * 6
    assert not SignInAttempt.objects.exists()
