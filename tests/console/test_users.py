"""Users: invitation links, roles and deactivation. The last administrator cannot be removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from capabilities.actors import SYSTEM, Actor
from capabilities.errors import ConflictError, InUseError
from routing_admin.console.people import actions as people
from routing_admin.models import AuditEvent, Person
from tests.cast import PASSWORD, open_browser
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NEW = "violet umbrella quarterly sonnet"
ACTOR = Actor("person", "admin")


def read_link(page: Any) -> str:
    link = Page(page).control("link")
    assert link
    return urlsplit(link.text).path


def page_language(page: Any) -> str | None:
    return next(control for control in Page(page).controls if control.tag == "html").attributes.get("lang")


def invite(admin_account: User, name: str = "ines", role: str = "viewer") -> str:
    page = open_browser(admin_account).post("/users/invite/", {"username": name, "role": role})
    assert page.status_code == 200
    return read_link(page)


def accept(link: str, password: str = NEW, language: str = "zh-hans") -> tuple[Client, Any]:
    client = open_browser()
    return client, client.post(link, {"new_password1": password, "new_password2": password, "language": language})


def list_events() -> list[tuple[str, str]]:
    return [(event.action, event.object_name) for event in AuditEvent.objects.order_by("id")]


def test_accepting_an_invitation_signs_in_with_the_invited_role_and_chosen_language(admin_account: User) -> None:
    client, answer = accept(invite(admin_account, role="administrator"))
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    ines = User.objects.get(username="ines")
    assert ines.check_password(NEW)
    assert (ines.is_staff, ines.is_superuser) == (True, False)
    assert Person.objects.get(user=ines).language == "zh-hans"
    assert page_language(client.get("/users/")) == "zh-Hans"
    assert list_events() == [("user.invite", "ines"), ("user.join", "ines")]


def test_user_language_applies_in_every_browser(admin_account: User) -> None:
    accept(invite(admin_account))
    other_browser = open_browser()
    other_browser.post("/login/", {"username": "ines", "password": NEW, "next": "/users/"})
    assert page_language(other_browser.get("/users/")) == "zh-Hans"
    other_browser.post("/language/", {"language": "en", "next": "/users/"})
    assert Person.objects.get(user__username="ines").language == "en"


def test_invitation_link_works_once(admin_account: User) -> None:
    link = invite(admin_account)
    accept(link)
    assert open_browser().get(link).status_code == 410
    assert accept(link, "another long password")[1].status_code == 410
    assert User.objects.get(username="ines").check_password(NEW)


def test_invitation_link_expires(admin_account: User, settings: Any) -> None:
    link = invite(admin_account)
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert open_browser().get(link).status_code == 410


def test_new_invitation_link_invalidates_the_previous_link(admin_account: User) -> None:
    first = invite(admin_account)
    ines = User.objects.get(username="ines")
    second = read_link(open_browser(admin_account).post(f"/users/{ines.pk}/link/"))
    assert open_browser().get(first).status_code == 410
    assert accept(second)[1].status_code == 302


@pytest.mark.parametrize("link", ["/join/MQ/wrong/", "/join/!!/x/", "/join/OTk5OTk5/abc-def/", "/join/LTE/abc-def/"])
def test_malformed_or_unknown_invitation_link_returns_410(admin_account: User, link: str) -> None:
    assert open_browser().get(link).status_code == 410


def test_weak_password_is_rejected_and_the_invitation_link_still_works(admin_account: User) -> None:
    link = invite(admin_account)
    client, answer = accept(link, "password12")
    assert answer.status_code == 422
    assert "_auth_user_id" not in client.session
    assert accept(link)[1].status_code == 302


def test_inviting_an_existing_user_name_in_another_case_is_rejected(admin_account: User) -> None:
    page = open_browser(admin_account).post("/users/invite/", {"username": "ADMIN", "role": "administrator"})
    assert page.status_code == 422
    assert "The user ADMIN already exists." in Page(page).error("User name")
    name = Page(page).field("User name")
    assert name
    assert name.value == "ADMIN"
    assert User.objects.count() == 1


def test_invitation_can_be_withdrawn_until_accepted(admin_account: User) -> None:
    link = invite(admin_account)
    ines = User.objects.get(username="ines")
    open_browser(admin_account).post(f"/users/{ines.pk}/withdraw/")
    assert open_browser().get(link).status_code == 410
    assert not User.objects.filter(username="ines").exists()
    assert open_browser(admin_account).post(f"/users/{admin_account.pk}/withdraw/").status_code == 409
    assert User.objects.filter(username="admin").exists()


def test_last_administrator_can_be_neither_demoted_nor_deactivated(admin_account: User, viewer_account: User) -> None:
    client = open_browser(admin_account)
    assert (
        client.post(f"/users/{admin_account.pk}/role/", {"role": "viewer", "was": "administrator"}).status_code == 409
    )
    refused = client.post(f"/users/{admin_account.pk}/active/", {"active": "0"})
    assert refused.status_code == 409
    assert Page(refused).shows("admin is the last administrator.")
    page = client.get(f"/users/{admin_account.pk}/")
    assert Page(page).shows("admin is the last administrator.")
    deactivate = Page(page).button("Deactivate")
    assert deactivate
    assert deactivate.is_disabled
    admin_account.refresh_from_db()
    assert (admin_account.is_staff, admin_account.is_active) == (True, True)
    assert list_events() == []


@pytest.mark.parametrize("state", ["invited", "deactivated"])
def test_administrators_unable_to_sign_in_do_not_count_as_remaining(admin_account: User, state: str) -> None:
    """Neither an invited nor a deactivated user counts as a remaining administrator."""
    other_admin = User.objects.create_user("otto", password=None if state == "invited" else PASSWORD, is_staff=True)
    if state == "deactivated":
        people.set_active(SYSTEM, other_admin.pk, active=False)
    with pytest.raises(InUseError, match="last administrator"):
        people.set_active(SYSTEM, admin_account.pk, active=False)


def test_administrator_can_be_demoted_unless_last(admin_account: User) -> None:
    second = User.objects.create_superuser("olga", password=PASSWORD)
    people.set_role(SYSTEM, second.pk, "viewer", expected="administrator")
    second.refresh_from_db()
    assert (second.is_staff, second.is_superuser) == (False, False)
    with pytest.raises(InUseError):
        people.set_role(SYSTEM, admin_account.pk, "viewer", expected="administrator")


def test_concurrent_role_change_is_a_conflict(admin_account: User, viewer_account: User) -> None:
    people.set_role(SYSTEM, viewer_account.pk, "administrator", expected="viewer")
    with pytest.raises(ConflictError):
        people.set_role(SYSTEM, viewer_account.pk, "administrator", expected="viewer")
    page = open_browser(admin_account).post(f"/users/{viewer_account.pk}/role/", {"role": "viewer", "was": "viewer"})
    assert page.status_code == 409
    assert Page(page).shows("Someone else changed this in the meantime.")


def test_deactivation_ends_sessions_and_links_and_reactivation_restores_the_password(
    admin_account: User, viewer_account: User
) -> None:
    session = open_browser(viewer_account)
    assert session.get("/users/").status_code == 200
    link = read_link(open_browser(admin_account).post(f"/users/{viewer_account.pk}/link/"))
    open_browser(admin_account).post(f"/users/{viewer_account.pk}/active/", {"active": "0"})
    assert session.get("/users/").status_code == 302
    assert open_browser().get(link).status_code == 410
    assert open_browser(admin_account).post(f"/users/{viewer_account.pk}/link/").status_code == 409
    open_browser(admin_account).post(f"/users/{viewer_account.pk}/active/", {"active": "1"})
    response = open_browser().post("/login/", {"username": "vera", "password": PASSWORD, "next": "/users/"})
    assert response.status_code == 302
    assert [name for name, _ in list_events()] == ["user.link", "user.deactivate", "user.reactivate", "user.sign_in"]


def test_reset_link_ends_other_sessions_only_when_used(admin_account: User, viewer_account: User) -> None:
    browser = open_browser(viewer_account)
    link = read_link(open_browser(admin_account).post(f"/users/{viewer_account.pk}/link/"))
    assert browser.get("/users/").status_code == 200
    client, _ = accept(link, language="en")
    assert browser.get("/users/").status_code == 302
    assert client.get("/users/").status_code == 200
    assert list_events()[-1] == ("user.password", "vera")


def test_changing_a_password_ends_all_other_sessions(viewer_account: User) -> None:
    browser, other_browser = open_browser(viewer_account), open_browser(viewer_account)
    form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert browser.post("/password/", {**form, "old_password": "wrong"}).status_code == 422
    assert browser.post("/password/", form).status_code == 302
    assert browser.get("/users/").status_code == 200
    assert other_browser.get("/users/").status_code == 302
    viewer_account.refresh_from_db()
    assert viewer_account.check_password(NEW)
    assert list_events() == [("user.password", "vera")]


def test_concurrent_use_of_an_invitation_link_sets_only_one_password(admin_account: User) -> None:
    invite(admin_account)
    first, second = User.objects.get(username="ines"), User.objects.get(username="ines")
    people.choose_password(ACTOR, first, NEW)
    with pytest.raises(ConflictError):
        people.choose_password(ACTOR, second, "another long password")
    assert User.objects.get(username="ines").check_password(NEW)


ACTS = [
    ("user_invite", False, {"username": "eve", "role": "administrator"}),
    ("user_role", True, {"role": "administrator", "was": "viewer"}),
    ("user_active", True, {"active": "0"}),
    ("user_link", True, {}),
    ("user_withdraw", True, {}),
]


@pytest.mark.parametrize(("name", "of_one", "data"), ACTS, ids=[name for name, _, _ in ACTS])
def test_user_actions_require_the_administrator_role_and_a_post(
    viewer_account: User, name: str, of_one: bool, data: dict[str, str]
) -> None:
    url = reverse(name, args=[viewer_account.pk] if of_one else [])
    assert open_browser(viewer_account).post(url, data).status_code == 403
    assert open_browser().post(url, data).headers["Location"].startswith("/login/")
    assert open_browser(User.objects.create_superuser("root", password=PASSWORD)).get(url).status_code == 405
    viewer_account.refresh_from_db()
    assert (viewer_account.is_staff, viewer_account.is_active) == (False, True)


def test_viewer_sees_the_users_without_buttons(admin_account: User, viewer_account: User) -> None:
    page = Page(open_browser(viewer_account).get("/users/"))
    assert page.shows("needs the administrator role")
    assert not page.button("Issue invitation link")
    assert not Page(open_browser(viewer_account).get(f"/users/{admin_account.pk}/")).button("Deactivate")


def test_user_list_query_count_does_not_grow_with_the_data(admin_account: User) -> None:
    client = open_browser(admin_account)
    query_count = count_queries(client, "/users/")
    User.objects.bulk_create([User(username=f"user{n}", password="!") for n in range(30)])
    assert count_queries(client, "/users/") == query_count


def test_actions_and_page_of_an_unknown_user_return_404(admin_account: User) -> None:
    for name in ("user_active", "user_link", "user_withdraw"):
        assert open_browser(admin_account).post(reverse(name, args=[999]), {}).status_code == 404
    assert open_browser(admin_account).get("/users/999/").status_code == 404


def test_new_invitation_shows_the_expiry_of_the_link(admin_account: User) -> None:
    page = Page(open_browser(admin_account).post("/users/invite/", {"username": "ines", "role": "viewer"}))
    assert page.shows(f"for {timedelta(days=3).days} days")
