"""A user's sessions: listed and ended on the user's page, and ended when the user loses a permission."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from routing_admin.models import AuditEvent, SessionSighting
from routing_admin.platform.auth.session_activity import (
    SessionActivity,
    SessionUse,
    program_and_system,
    session_activity,
)
from tests.cast import PASSWORD, open_browser, person
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1"
NEW = "violet umbrella quarterly sonnet"


def sign_in(account: User, agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    """Sign in and open a page, so that activity in the session is recorded."""
    browser = open_browser(account, headers={"user-agent": agent}, REMOTE_ADDR=address)
    assert browser.get("/").status_code == 200
    return browser


def is_signed_in(browser: Client) -> bool:
    return bool(browser.get("/").status_code == 200)


def user_url(account: User) -> str:
    return reverse("user", args=[account.pk])


def test_user_page_lists_sessions_with_device_and_ip_address(viewer_account: User, demo: None) -> None:
    browser = sign_in(viewer_account)
    sign_in(viewer_account, IPHONE, "198.51.100.4")
    sessions = Page(browser.get(user_url(viewer_account))).region("Sessions")
    assert sessions.rows == ["Firefox on Linux", "Safari on iPhone"]
    this, other = (sessions.row(name) for name in sessions.rows)
    assert this.shows("This session")
    assert not this.button("End")
    assert other.shows("198.51.100.4")
    assert other.button("End")


def test_session_keys_appear_neither_on_pages_nor_in_rows(viewer_account: User, demo: None) -> None:
    """Sessions are identified by a digest that does not work as a session cookie."""
    browser = sign_in(viewer_account)
    session_activity().write()
    key = browser.cookies["sid"].value
    digest = SessionSighting.objects.get().digest
    assert key not in browser.get(user_url(viewer_account)).content.decode()
    assert key not in str(list(SessionSighting.objects.values()))
    assert not is_signed_in(Client(headers={"cookie": f"sid={digest}"}))


def test_ending_a_session_signs_out_only_the_browser_of_this_session(viewer_account: User, demo: None) -> None:
    browser, phone, desktop = sign_in(viewer_account), sign_in(viewer_account, IPHONE), sign_in(viewer_account)
    page = Page(browser.get(user_url(viewer_account)))
    safari = [control for control in page.controls if control.attributes.get("name") == "session"]
    digests = {str(control.attributes["value"]) for control in safari}
    session_activity().write()
    ending = SessionSighting.objects.get(user_agent=IPHONE).digest
    assert ending in digests
    browser.post(reverse("session_end"), {"session": ending})
    assert [is_signed_in(client) for client in (browser, phone, desktop)] == [True, False, True]
    event = AuditEvent.objects.get(action="session.end")
    assert (event.object_name, event.details) == (viewer_account.username, {"sessions": 1})


def test_all_other_sessions_can_be_ended_together(viewer_account: User, demo: None) -> None:
    browser, phone = sign_in(viewer_account), sign_in(viewer_account, IPHONE)
    stranger = sign_in(person("otto"))
    browser.post(reverse("session_end"))
    assert [is_signed_in(client) for client in (browser, phone, stranger)] == [True, False, True]


def test_user_cannot_end_a_session_of_another_user(viewer_account: User, demo: None) -> None:
    stranger = sign_in(person("otto"))
    session_activity().write()
    digest = SessionSighting.objects.get().digest
    sign_in(viewer_account).post(reverse("session_end"), {"session": digest})
    assert is_signed_in(stranger)


def test_administrator_can_see_and_end_sessions_of_other_users(
    admin: Client, editor: Client, viewer_account: User, demo: None
) -> None:
    phone = sign_in(viewer_account, IPHONE)
    assert Page(admin.get(user_url(viewer_account))).region("Sessions").rows == ["Safari on iPhone"]
    assert not Page(editor.get(user_url(viewer_account))).shows("Safari on iPhone")
    admin.post(reverse("user_session_end", args=[viewer_account.pk]))
    assert not is_signed_in(phone)
    assert Page(admin.get(user_url(viewer_account))).region("Sessions").shows("Not signed in anywhere.")


@pytest.mark.parametrize(("role", "remains"), [("editor", False), ("viewer", False), ("administrator", True)])
def test_demoting_a_user_ends_all_sessions_of_the_user(role: str, remains: bool, admin: Client, demo: None) -> None:
    ada = person("ada", is_staff=True)
    browser = sign_in(ada)
    admin.post(reverse("user_role", args=[ada.pk]), {"role": role, "was": "administrator"})
    assert is_signed_in(browser) is remains
    details = AuditEvent.objects.filter(action="user.role").values_list("details", flat=True)
    assert [detail["sessions"] for detail in details] == ([] if remains else [1])


def test_promoting_a_user_ends_no_session(admin: Client, viewer_account: User, demo: None) -> None:
    browser = sign_in(viewer_account)
    admin.post(reverse("user_role", args=[viewer_account.pk]), {"role": "editor", "was": "viewer"})
    assert browser.get(reverse("route_new")).status_code == 200


def test_administrator_is_signed_out_after_self_demotion(admin: Client, admin_account: User, demo: None) -> None:
    person("ada", is_staff=True)
    answer = admin.post(reverse("user_role", args=[admin_account.pk]), {"role": "viewer", "was": "administrator"})
    assert (answer.status_code, answer["Location"]) == (302, "/login/")
    assert not is_signed_in(admin)


def test_sessions_of_a_deactivated_user_stay_ended_after_reactivation(
    admin: Client, viewer_account: User, demo: None
) -> None:
    browser = sign_in(viewer_account)
    for active in ("0", "1"):
        admin.post(reverse("user_active", args=[viewer_account.pk]), {"active": active})
        assert not is_signed_in(browser)


def test_changing_a_password_ends_all_other_sessions(viewer_account: User, demo: None) -> None:
    browser, phone = sign_in(viewer_account), sign_in(viewer_account, IPHONE)
    browser.post("/password/", {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert [is_signed_in(browser), is_signed_in(phone)] == [True, False]
    assert Session.objects.filter(session_key=phone.cookies["sid"].value).count() == 0


def test_session_activity_is_recorded_at_most_once_per_minute(db: Any) -> None:
    activity, now = SessionActivity(), timezone.now()
    for seconds in (0, 30, 61):
        activity.note("key", SessionUse(FIREFOX, "192.0.2.7", now + timedelta(seconds=seconds)))
        assert activity.write()
        assert SessionSighting.objects.get().last_seen == now + timedelta(seconds=0 if seconds < 60 else seconds)
    assert SessionSighting.objects.get().first_seen == now


def test_use_recorded_during_a_write_is_written_later(monkeypatch: pytest.MonkeyPatch, db: Any) -> None:
    activity, now = SessionActivity(), timezone.now()
    activity.note("key", SessionUse(FIREFOX, "192.0.2.7", now))
    later = SessionUse(FIREFOX, "192.0.2.7", now + timedelta(seconds=61))
    with monkeypatch.context() as slow:
        slow.setattr(f"{SessionActivity.__module__}._update", lambda _: activity.note("key", later))
        assert activity.write()
    assert activity.write()
    assert SessionSighting.objects.get().last_seen == later.at
    assert activity.waiting() == {}


def test_session_activity_without_changes_writes_nothing(django_assert_num_queries: Any, db: Any) -> None:
    with django_assert_num_queries(0):
        assert SessionActivity().write()


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (FIREFOX, ("Firefox", "Linux")),
        (IPHONE, ("Safari", "iPhone")),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/141.0 Safari/537.36 Edg/141.0", ("Edge", "Windows")),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/141.0 Mobile Safari/537.36 MicroMessenger/8.0", ("WeChat", "Android")),
        ("", ("", "")),
    ],
)
def test_device_name_contains_browser_and_operating_system(agent: str, expected: tuple[str, str]) -> None:
    assert program_and_system(agent) == expected
