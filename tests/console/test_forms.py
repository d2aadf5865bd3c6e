"""Every form marks required fields, lists all errors together, and has a save bar that names its changes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from django.test import Client

from routing_admin.models import Revision, TaskRoute
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
REQUIRED_NOTE = "Fields marked * are required."
FORMS = {
    "/new/agent/": ["Id"],
    "/new/service/": ["Provider", "Model name", "Id", "Name"],
    "/new/provider/?own=1": ["Name", "Base URL", "Default model"],
    "/routes/new/": ["Task type"],
    "/aliases/": ["Model name callers use", "Points to"],
    "/usage/budgets/": ["Name"],
    "/users/": ["User name"],
    "/agents/text-agent/": ["Recipient"],
    "/services/text-model/": ["Name", "Provider", "Model name"],
    "/providers/echo/": ["Base URL", "Default model"],
}
"""Maps pages to the labels of their required fields."""


@pytest.mark.parametrize("address", FORMS)
def test_required_fields_are_marked_and_the_mark_is_explained(admin: Client, address: str) -> None:
    """The attribute `required` is for screen readers.

    For other users, the stylesheet adds a mark, and a sentence explains it.
    """
    page = Page(admin.get(address))
    assert page.text.count(REQUIRED_NOTE) == 1
    for label in FORMS[address]:
        field = page.field(label)
        assert field, label
        assert "required" in field.attributes, label


@pytest.mark.parametrize("address", FORMS)
def test_only_marked_fields_are_required(admin: Client, address: str) -> None:
    required = [control for control in Page(admin.get(address)).controls if "required" in control.attributes]
    assert len(required) == len(FORMS[address])


EMPTY: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "agent": ("/new/agent/", {"service": "none", "task_type": "none"}, ["Id", "Model service", "Task route"]),
    "service": (
        "/new/service/",
        {"provider": "none", "timeout_total": "x", "extra_body_json": "["},
        ["Provider", "Model name", "Id", "Name"],
    ),
    "provider": ("/new/provider/?own=1", {"endpoint": "ftp://x"}, ["Name", "Base URL", "Default model"]),
    "provider's settings": (
        "/providers/echo/",
        {"endpoint": "x", "timeout_total": "soon", "proxy": "x", "protocol": "openai"},
        ["Base URL", "Default model", "Total", "Outgoing proxy"],
    ),
    "alias": ("/aliases/", {"target": "none"}, ["Model name callers use", "Points to"]),
    "budget": ("/usage/budgets/save/", {"kind": "team", "tokensPerDay": "x"}, ["Name", "Tokens per day"]),
    "invitation": ("/users/invite/", {"username": "a b", "role": "viewer"}, ["User name"]),
    "key": ("/keys/issue/text-agent/", {"days": "0", "team": "a" * 300}, ["Expires after (days)", "Team"]),
    "link": ("/links/make/text-agent/", {"link-days": "7"}, ["Recipient"]),
    "agent's settings": (
        "/agents/text-agent/",
        {"service": "none", "task_type": "none", "inFlight": "x"},
        ["Model service", "Task route"],
    ),
}
"""Maps each form to its URL, the posted data, and the labels of the fields with errors."""
DJANGO_MESSAGES = re.compile(
    "This field is required|Enter a valid|Select a valid|Ensure this|Ensure that"
    "|这个字段是必填项|输入一个|选择一个有效|确保"
)


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_form_error_is_shown_at_the_field_and_in_the_summary(admin: Client, name: str, language: str) -> None:
    address, data, labels = EMPTY[name]
    admin.cookies["django_language"] = language
    answer = admin.post(address, data)
    page = Page(answer)
    summary = page.control("problems")
    assert answer.status_code == 422
    assert summary
    assert "autofocus" in summary.attributes
    wrong = {control.attributes["id"] for control in page.controls if "aria-invalid" in control.attributes}
    linked = {(control.attributes.get("href") or "")[1:] for control in page.controls if control.tag == "a"}
    assert wrong
    assert wrong <= linked
    assert not DJANGO_MESSAGES.search(page.text)
    if language == "en":
        assert all(page.error(label) for label in labels)


SAVED: dict[str, tuple[dict[str, str], list[str]]] = {
    "/agents/text-agent/": ({"name": "Renamed", "inFlight": "3"}, ["Name", "Concurrent requests"]),
    "/services/text-model/": ({"name": "Renamed", "timeout_total": "9"}, ["Name", "Timeout (total)"]),
    "/providers/echo/": ({"display_name": "Renamed", "timeout_total": "9"}, ["Display name", "Timeout (total)"]),
}


def form_values(admin: Client, address: str) -> dict[str, Any]:
    """Return the form data that a browser would post for the page's main form if nothing was changed."""
    form = admin.get(address).context["form"]
    data: dict[str, Any] = {}
    for bound in (*form, *(getattr(form, "price", None) or ())):
        value = bound.field.prepare_value(bound.initial)
        if value not in (None, False):
            data[bound.html_name] = "on" if value is True else value
    return data


@pytest.mark.parametrize("address", SAVED)
def test_save_bar_names_the_changed_fields_without_saving(admin: Client, address: str) -> None:
    before, data = Revision.objects.count(), form_values(admin, address)
    changed, labels = SAVED[address]
    quiet = Page(admin.post(address, {**data, "act": "changes"}))
    assert quiet.shows("No changes yet")
    bar = Page(admin.post(address, {**data, **changed, "act": "changes"}))
    assert bar.shows("2 changes:")
    assert bar.shows(" · ".join(labels)).tag == "span"
    assert Revision.objects.count() == before


@pytest.mark.parametrize("address", [*SAVED, "/routes/design/"])
def test_every_editing_page_has_exactly_one_save_bar(admin: Client, viewer: Client, address: str) -> None:
    page = Page(admin.get(address))
    save, discard = page.control("save"), page.control("discard")
    assert save
    assert discard
    assert (save.name, save.attributes["class"], save.attributes["aria-keyshortcuts"]) == (
        "Save",
        "btn primary",
        "Control+Enter",
    )
    assert (discard.name, discard.attributes["href"]) == ("Discard", address)
    assert Page(viewer.get(address)).control("savebar") is None


def test_save_bar_of_the_route_editor_reports_an_invalid_number(admin: Client) -> None:
    version = TaskRoute.objects.get(task_type="design").version
    data = {"card": "1", "c-1-provider": "echo", "c-1-temperature": "hot", "deadline": "x", "preset": "seed"}
    for act in ("changes", "save"):
        answer = admin.post("/routes/design/", {**data, "version": version, "act": act})
        bar = Page(answer).control("changes")
        assert bar
        assert "2 fields need attention: Total deadline, seconds echo: Temperature" in bar.name
        assert "No changes yet" not in bar.name
    summary = Page(answer).control("problems")
    assert summary
    assert "Total deadline, seconds: Enter a number." in summary.name
    assert "echo: Temperature: Enter a number." in summary.name


@pytest.mark.parametrize("address", [*FORMS, "/routes/design/"])
def test_element_ids_are_unique_on_every_page(admin: Client, address: str) -> None:
    ids = Counter(
        control.attributes["id"] for control in Page(admin.get(address)).controls if "id" in control.attributes
    )
    assert [name for name, count in ids.items() if count > 1] == []


def test_rejected_budget_change_is_shown_in_the_dialog_of_this_budget(admin: Client) -> None:
    for name in ("search", "support"):
        admin.post("/usage/budgets/save/", {"kind": "team", "name": name, "tokensPerDay": "9"})
    wrong = {"kind": "team", "name": "support", "edit": "1", "tokensPerDay": "many", "requestsPerMinute": "4"}
    answer = admin.post("/usage/budgets/save/", wrong)
    page = Page(answer)
    (dialog,) = (control for control in page.controls if control.tag == "dialog" and "open" in control.attributes)
    title = page.control(dialog.attributes["aria-labelledby"] or "")
    assert (answer.status_code, title.name if title else "") == (422, "Budget of support")
    (field,) = (control for control in page.controls if "aria-invalid" in control.attributes)
    assert (field.attributes["name"], field.value) == ("tokensPerDay", "many")
    assert page.control(f"{field.attributes['id']}_error").name == "Enter a whole number."  # type: ignore[union-attr]
    again = admin.post("/usage/budgets/save/", {**wrong, "tokensPerDay": "10"})
    assert again.status_code == 302
