"""Password hashing has limited concurrency and a fair, bounded queue. If the queue is full, callers get a 503."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.auth.hashers import get_hashers_by_algorithm, make_password
from django.contrib.auth.models import User
from django.test import Client

from capabilities.fair_slots import FairSlots, OverloadedError
from routing_admin.models import SignInAttempt
from routing_admin.platform.auth.password_hashing import hashing_slots
from tests.cast import PASSWORD, open_browser
from tests.console.test_users import NEW, accept, invite

ARGON2 = "routing_admin.platform.auth.password_hashing.BoundedArgon2Hasher"


class Holder:
    """A thread that holds a slot until its `end` is called."""

    def __init__(self, slots: FairSlots, name: str) -> None:
        self.holds, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(slots, name), daemon=True)
        self._thread.start()

    def _run(self, slots: FairSlots, name: str) -> None:
        with slots.hold(name):
            self.holds.set()
            self._end.wait(30)

    def end(self) -> None:
        self._end.set()
        self._thread.join(30)


def wait_for_waiters(slots: FairSlots, count: int) -> None:
    pause = threading.Event()
    for _ in range(3000):
        if slots.waiting == count:
            return
        pause.wait(0.01)
    raise AssertionError(slots.waiting)


@pytest.fixture
def occupied_slots() -> Iterator[None]:
    """Take all slots of this process, and make other callers give up at once instead of waiting."""
    with ExitStack() as stack:
        for _ in range(hashing_slots().slots):
            holder = Holder(hashing_slots(), "other")
            assert holder.holds.wait(30)
            stack.callback(holder.end)
        stack.callback(setattr, hashing_slots(), "wait_seconds", hashing_slots().wait_seconds)
        hashing_slots().wait_seconds = 0.0
        yield


def test_process_computes_at_most_two_password_hashes_at_once(settings: Any) -> None:
    from routing_admin import settings as product

    assert product.PASSWORD_HASHERS[0] == ARGON2
    assert (hashing_slots().slots, hashing_slots().queue) == (2, 32)
    settings.PASSWORD_HASHERS = [ARGON2]
    get_hashers_by_algorithm.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing_slots(), "wait_seconds", 60.0)
        with ThreadPoolExecutor(8) as pool:
            hashes = list(pool.map(make_password, [PASSWORD] * 8))
    assert len(set(hashes)) == 8
    assert all("$m=102400,t=2,p=1$" in encoded for encoded in hashes)
    assert not hashing_slots().waiting


@pytest.mark.usefixtures("occupied_slots")
def test_password_hashing_without_a_free_slot_raises_an_overload_error(settings: Any) -> None:
    settings.PASSWORD_HASHERS = [ARGON2]
    with pytest.raises(OverloadedError):
        make_password(PASSWORD)


def test_threads_never_hold_more_than_the_configured_slots() -> None:
    slots, inside, peak, lock = FairSlots(3, 64, 30.0), 0, 0, threading.Lock()

    def work(name: str) -> None:
        nonlocal inside, peak
        with slots.hold(name), slots.hold(name):  # A thread that already holds a slot needs no second one.
            with lock:
                inside += 1
                peak = max(peak, inside)
            threading.Event().wait(0.001)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, "abcabcabcabc"))
    assert peak == 3


def test_released_slot_is_granted_to_the_address_with_the_fewest_slots() -> None:
    """Many attempts from one address must not delay those from other addresses."""
    slots = FairSlots(2, 8, 30.0)
    holders = [Holder(slots, "many") for _ in range(2)]
    for holder in holders:
        assert holder.holds.wait(30)
    waiting = [Holder(slots, "many") for _ in range(3)]
    wait_for_waiters(slots, 3)
    other = Holder(slots, "other")
    wait_for_waiters(slots, 4)
    holders[0].end()
    assert other.holds.wait(30)
    for holder in [other, holders[1], *waiting]:
        holder.end()
    assert not slots.waiting


def test_one_address_fills_at_most_three_quarters_of_the_queue() -> None:
    slots = FairSlots(1, 4, 30.0)
    holders = [Holder(slots, "many")]
    assert holders[0].holds.wait(30)
    for count in (1, 2, 3):
        holders.append(Holder(slots, "many"))
        wait_for_waiters(slots, count)
    with pytest.raises(OverloadedError), slots.hold("many"):
        pass
    holders.append(Holder(slots, "newcomer"))
    wait_for_waiters(slots, 4)
    with pytest.raises(OverloadedError), slots.hold("third"):
        pass
    for holder in (holders[0], holders[-1], *holders[1:-1]):  # The threads end in the order in which they got a slot.
        holder.end()


def test_paused_thread_releases_its_slot() -> None:
    slots = FairSlots(1, 4, 30.0)
    with slots.hold("one"):
        with slots.pause():
            other = Holder(slots, "other")
            assert other.holds.wait(30)
            other.end()
        assert not slots.acquire_at_once("third")
    with slots.pause():
        pass
    assert slots.acquire_at_once("third")


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.usefixtures("occupied_slots")
def test_sign_in_returns_503_while_too_many_passwords_are_checked(admin_account: User) -> None:
    answer = Client().post("/login/", {"username": admin_account.get_username(), "password": PASSWORD})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert "Many passwords are being checked at this moment" in answer.content.decode()
    assert f'value="{admin_account.get_username()}"' in answer.content.decode()
    assert not SignInAttempt.objects.exists()


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.usefixtures("occupied_slots")
def test_password_change_returns_503_while_too_many_passwords_are_hashed(viewer_account: User) -> None:
    form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    answer = open_browser(viewer_account).post("/password/", form)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


@pytest.mark.django_db(databases=["default", "logs"])
def test_invitation_returns_503_during_password_hashing_overload_and_stays_valid(
    admin_account: User, settings: Any, request: pytest.FixtureRequest
) -> None:
    link = invite(admin_account)
    settings.PASSWORD_HASHERS = [ARGON2]
    request.getfixturevalue("occupied_slots")
    client = Client(raise_request_exception=False)
    answer = client.post(link, {"new_password1": NEW, "new_password2": NEW, "language": "en"})
    assert answer.status_code == 503
    assert "Nothing was changed. Try again in a few seconds." in answer.content.decode()
    assert int(answer.headers["Retry-After"]) > 0
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    assert accept(link)[1].status_code == 302
