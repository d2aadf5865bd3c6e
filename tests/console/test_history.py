"""History in the browser: revisions described, compared and restored, and the audit log."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from capabilities.actors import Actor, AuditedAction
from capabilities.core.services.agent_limits import Meter
from capabilities.models import Agent, Service
from routing_admin.configuration.agents.actions import issue_key, put_agent, save_agent
from routing_admin.configuration.audit import write_event
from routing_admin.console.base.lists import PAGE_SIZES
from routing_admin.console.history.fields import field_name
from routing_admin.console.history.phrases import change_line
from routing_admin.console.routes.actions import save_alias, save_route
from routing_admin.core.configuration.diff import Change, ChangeKind, sentence
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import Alias, Revision, TaskRoute
from tests.console.page import Page
from tests.console.visits import count_queries, newest_revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
PAGE = PAGE_SIZES[0]


def set_alias(name: str, target: str = "task:default") -> int:
    save_alias(ADA, name, target)
    return newest_revision()


def test_history_shows_author_and_changes_of_each_revision(admin: Client, demo: None) -> None:
    set_alias("gpt-4o")
    page = Page(admin.get(reverse("history")))
    assert page.shows(f"Revision {newest_revision()} is in use")
    (line,) = (page.row(name) for name in page.rows if page.row(name).shows("alias gpt-4o → task:default"))
    assert line.shows("Alias set")
    assert line.shows("ada")
    assert page.shows("more")


def test_history_query_count_is_the_same_for_three_and_thirty_revisions(admin: Client) -> None:
    counts = []
    for names in (range(3), range(3, 30)):
        for name in names:
            set_alias(f"alias-{name}")
        counts.append(count_queries(admin, reverse("history")))
    assert counts[0] == counts[1]


def test_history_rows_share_one_form(admin: Client) -> None:
    """If each row had its own form, those forms would take up space below the list."""
    counts = []
    for name in range(4):
        set_alias(f"alias-{name}")
        counts.append(sum(control.tag == "form" for control in Page(admin.get(reverse("history"))).controls))
    assert counts[1] == counts[3]


def shown_changes(page: Page) -> list[str]:
    return [item.text for item in page.region("Changes").items]


def add_revisions(number_from: int, count: int) -> None:
    Revision.objects.bulk_create(
        Revision(actor_kind="person", actor="ada", message=f"change {n}", snapshot={}, sha256="x")
        for n in range(number_from, number_from + count)
    )


def test_history_pages_contain_each_revision_exactly_once(admin: Client) -> None:
    add_revisions(1, 2 * PAGE + 5)
    page = Page(admin.get(reverse("history")))
    numbers = [int(name) for name in page.rows]
    while older := page.link("Older"):
        page = Page(admin.get(reverse("history") + (older.attributes["href"] or "")))
        numbers += [int(name) for name in page.rows]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == len(numbers) == 2 * PAGE + 5
    newer = page.link("Newer")
    assert newer
    newer_page = Page(admin.get(reverse("history") + (newer.attributes["href"] or "")))
    assert [int(name) for name in newer_page.rows] == numbers[PAGE : 2 * PAGE]


def test_revision_page_shows_every_change_with_old_and_new_text(admin: Client, demo: None) -> None:
    row = TaskRoute.objects.get(task_type="design")
    row.retries = 5
    save_route(ADA, row, [CandidateSpec("echo", "echo-text")])
    page = Page(admin.get(reverse("revision", args=[newest_revision()])))
    before = "echo/echo-503 → echo/echo-vision → echo/echo-text"
    assert shown_changes(page) == [
        f"Changed task route design fallback chain: echo/echo-text was: {before}",
        "Changed task route design retries: 5",
    ]
    assert admin.get(reverse("revision", args=[10**12])).status_code == 404


def test_any_two_revisions_can_be_compared_in_either_direction(admin: Client, demo: None) -> None:
    first, second = set_alias("one"), set_alias("two")
    forward = Page(admin.get(reverse("compare"), {"a": first, "b": second}))
    assert shown_changes(forward) == ["New alias two → task:default"]
    backward = Page(admin.get(reverse("compare"), {"a": second, "b": first}))
    assert shown_changes(backward) == ["Removed alias two → task:default"]
    newest_two = Page(admin.get(reverse("compare")))
    assert [newest_two.field(label).value for label in ("From revision", "To revision")] == [str(first), str(second)]
    assert admin.get(reverse("compare"), {"a": 0, "b": first}).status_code == 200


def test_comparison_with_an_unknown_revision_shows_an_error_at_the_field(admin: Client, demo: None) -> None:
    number = set_alias("one")
    for text in (str(10**12), "yesterday", "9" * 30):
        answer = admin.get(reverse("compare"), {"a": text, "b": number})
        assert answer.status_code == 422
        assert Page(answer).shows(f"There is no revision “{text}”.")
        assert "identical" not in Page(answer).text


def test_compared_revision_can_be_chosen_by_number_author_or_description(admin: Client, demo: None) -> None:
    numbers = [set_alias("one"), set_alias("two")]
    url = reverse("options", args=["revision"])
    offered = {
        part: {option.value: option.text for option in Page(admin.get(url, {"a": part})).controls}
        for part in ("", str(numbers[1]), "ada", "two", "one")
    }
    assert [part for part, options in offered.items() if str(numbers[1]) not in options] == ["one"]
    assert re.match(r"Alias set · ada · \d{4}-", offered[""][str(numbers[1])])


def test_comparison_shows_description_author_and_time_of_both_revisions(admin: Client, demo: None) -> None:
    page = Page(admin.get(reverse("compare"), {"a": "0", "b": set_alias("one")}))
    assert page.shows("The empty configuration before the first revision")
    assert page.shows("Alias set · ada · just now")


def test_restoring_a_revision_previews_the_change_and_can_be_undone(admin: Client, demo: None) -> None:
    before = newest_revision()
    set_alias("gpt-4o")
    assert Page(admin.get(reverse("history"))).link("Restore")
    page = Page(admin.get(reverse("restore", args=[before])))
    assert shown_changes(page) == ["Removed alias gpt-4o → task:default"]
    assert page.heading("1 change")
    assert page.button("Restore")
    assert newest_revision() == before + 1
    answer = admin.post(reverse("restore", args=[before]), {"seen": page.hidden("seen")}, follow=True)
    restored = Revision.objects.get(number=newest_revision())
    assert (restored.restores, [change["name"] for change in restored.changes]) == (before, ["gpt-4o"])
    assert Page(answer).form(f"/undo/{restored.number}/")
    admin.post(reverse("undo", args=[restored.number]))
    assert "gpt-4o" in {change["name"] for change in Revision.objects.get(number=newest_revision()).changes}


def test_restoring_the_newest_revision_is_reported_as_no_change(admin: Client, demo: None) -> None:
    page = Page(admin.get(reverse("restore", args=[newest_revision()])))
    assert page.shows("Nothing to restore")
    assert page.hidden("seen") == ""


def button_names(answer: Any) -> list[str]:
    return [
        control.name
        for control in Page(answer).controls
        if control.tag == "button" and control.name in ("Undo", "Redo")
    ]


def test_undo_offers_redo_and_redo_offers_undo(admin: Client, demo: None) -> None:
    set_alias("gpt-4o")
    undone = admin.post(reverse("undo", args=[newest_revision()]), follow=True)
    assert "Undone: " in Page(undone).status
    assert "gpt-4o" in Page(undone).status
    assert button_names(undone) == ["Redo"]
    assert Page(undone).hidden("redo") == "1"
    redone = admin.post(reverse("undo", args=[newest_revision()]), {"redo": "1"}, follow=True)
    assert "Redone." in Page(redone).status
    assert button_names(redone) == ["Undo"]
    assert Alias.objects.filter(name="gpt-4o").exists()


def test_restoring_a_revision_names_consequences_and_keeps_newer_agents(admin: Client, demo: None) -> None:
    """Agents created since the restored revision are kept with their keys.

    If an agent's route no longer exists, the agent loses it.
    """
    before = newest_revision()
    save_route(ADA, TaskRoute(task_type="fresh"), [CandidateSpec("echo", "echo-text")])
    for name, task in (("newer", "fresh"), ("steady", "default")):
        save_agent(ADA, Agent(agent_id=name, task_type=task))
        issue_key(ADA, Agent.objects.get(agent_id=name))
    newest = newest_revision()
    response = admin.post(reverse("restore", args=[before]), follow=True)
    assert newest_revision() == newest
    preview = Page(response)
    assert preview.shows("Agents made since stay, with their keys: newer, steady.")
    assert preview.shows("The agent newer no longer reaches any model.")
    admin.post(reverse("restore", args=[before]), {"seen": "1"})
    assert (Revision.objects.get(number=newest_revision()).restores, newest_revision()) == (before, newest + 1)
    agents_with_keys = Agent.objects.filter(keys__revoked_at=None, keys__isnull=False, agent_id__in=["newer", "steady"])
    assert [*agents_with_keys.values_list("agent_id", "task_type")] == [("newer", ""), ("steady", "default")]
    assert not TaskRoute.objects.filter(task_type="fresh").exists()
    admin.post(reverse("undo", args=[newest_revision()]))
    assert Agent.objects.get(agent_id="newer").task_type == "fresh"


def test_undoing_the_creation_of_an_agent_with_child_agents_is_rejected(admin: Client, demo: None) -> None:
    save_agent(ADA, Agent(agent_id="maker", task_type="default"))
    put_agent(ADA, "maker", "made")
    answer = admin.post(reverse("undo", args=[newest_revision()]), follow=True)
    assert Page(answer).shows("This agent created others that still exist: made.")
    assert Agent.objects.filter(agent_id="made").exists()


def test_viewer_can_read_the_history_but_not_restore_revisions(viewer: Client, demo: None) -> None:
    set_alias("gpt-4o")
    first = Revision.objects.last()
    assert first is not None
    for name in ("history", "compare", "audit"):
        assert viewer.get(reverse(name)).status_code == 200
    assert not Page(viewer.get(reverse("revision", args=[first.number]))).shows("Restore this revision")
    assert viewer.post(reverse("restore", args=[first.number])).status_code == 403


def test_audit_log_is_filtered_by_action_actor_and_object(admin: Client, demo: None) -> None:
    set_alias("gpt-4o")
    page = Page(admin.get(reverse("audit"), {"action": "alias.change", "actor": "ADA", "object": "gpt"}))
    assert page.column("What") == ["gpt-4o"]
    none = Page(admin.get(reverse("audit"), {"actor": "unknown"}))
    assert none.shows("Nothing matches these filters")
    assert none.link("Clear filters")


def test_each_audit_log_filter_has_a_chip_to_remove_the_filter(admin: Client) -> None:
    for number in (7, 8):
        write_event(ADA, AuditedAction("alias.change", "alias", f"a{number}", revision=number))
    page = Page(admin.get(reverse("audit"), {"revision": "7", "actor": "ada"}))
    assert page.column("What") == ["a7"]
    assert page.region("Filters").link_urls == [
        f"{reverse('audit')}?revision=7",
        f"{reverse('audit')}?actor=ada",
    ]
    assert admin.get(reverse("audit"), {"revision": "7", "actor": ""})["Location"] == f"{reverse('audit')}?revision=7"
    assert len(Page(admin.get(reverse("audit"), {"revision": "seven"})).table_rows) == 2


def test_successive_sign_ins_of_a_user_are_grouped_into_one_line(admin: Client) -> None:
    """The line shows the number and time of each sign-in.

    After another event, or with another user, a new line begins.
    """
    for name in ("ada", "ada", "ada", "bob"):
        write_event(Actor("person", name), AuditedAction("user.sign_in", "user", name))
    for name in ("a", "b"):
        write_event(ADA, AuditedAction("alias.change", "alias", name))
    page = Page(admin.get(reverse("audit")))
    assert page.column("What") == ["b", "a", "bob", "ada"]
    assert [bool(row.shows("2 more before")) for row in page.table_rows] == [False, False, False, True]
    assert len(page.disclosure("2 more before").items) == 2
    assert page.shows("6 events, newest first")


def test_audit_event_shows_the_number_of_changed_entries(admin: Client) -> None:
    names = ("a", "b", "b")
    changes = [{"kind": "provider", "name": name, "field": "endpoint", "action": "changed"} for name in names]
    row = Revision.objects.create(actor="ada", message="many", changes=changes, snapshot={}, sha256="x")
    write_event(ADA, AuditedAction("provider.change", revision=row.number))
    page = Page(admin.get(reverse("audit")))
    assert page.column("What") == ["2 entries"]
    assert page.link("2 entries")


def test_history_search_finds_revisions_by_change_and_author(admin: Client, demo: None) -> None:
    set_alias("gpt-4o")
    set_alias("代码")
    add_revisions(newest_revision() + 1, PAGE + 1)
    found = [Page(admin.get(reverse("history"), {"q": q})).rows for q in ("GPT-4o", "代码", "nothing")]
    assert [len(names) for names in found] == [1, 1, 0]
    older = Page(admin.get(reverse("history"), {"q": "ada"})).link("Older")
    assert older
    assert "q=ada" in (older.attributes["href"] or "")


def test_audit_log_pagination_keeps_the_filters(admin: Client) -> None:
    for action in ["key.issue"] * (PAGE + 3) + ["key.revoke"] * 5:
        write_event(Actor("person", "ada"), AuditedAction(action))
    first = Page(admin.get(reverse("audit"), {"action": "key.issue"}))
    older = first.link("Older")
    assert older
    second = Page(admin.get(older.attributes["href"] or ""))
    assert [len(page.table_rows) for page in (first, second)] == [PAGE, 3]
    assert all(row.link("Agent key issued") for row in second.table_rows)


def test_secret_in_an_unknown_field_of_a_change_is_masked() -> None:
    change = Change(
        action=ChangeKind.ADDED,
        kind="provider",
        name="x",
        field="extra.note",
        before=None,
        after="sk-live-0123456789abcdef",
    )
    assert "0123456789" not in change_line(change).text


def test_numbers_in_change_descriptions_are_rounded() -> None:
    near = {"provider": "a", "model": None, "temperature": 0.9500000000000001, "max_tokens": None}
    near |= {"extra_body": {"top_p": 0.1 + 0.2}, "extra": {}}
    change = Change(action=ChangeKind.CHANGED, kind="route", name="r", field="candidates", before=[], after=[near])
    for text in (change_line(change).text, sentence(change)):
        assert "temperature 0.95" in text
        assert "00000" not in text


@pytest.mark.parametrize("path", [*(f"limits.{meter}" for meter in Meter), "limits.models", "timeouts.firstContent"])
def test_limits_in_a_change_are_named_in_the_language_of_the_reader(path: str) -> None:
    with override("zh-hans"):
        assert not re.search("[A-Za-z]", field_name(path).replace("Token", ""))
    assert field_name(path).isascii()


def test_empty_history_links_to_the_import_page(admin: Client) -> None:
    assert any(url.startswith(reverse("config")) for url in Page(admin.get(reverse("history"))).link_urls)


def revision_ranges(page: Page) -> list[str]:
    """Return the first column of the history: a number, or the first and last number of edits that share a line."""
    return [next(cell.text for cell in row.controls if cell.tag == "th") for row in page.table_rows]


def edit_cells(client: Client, *names: str) -> None:
    for name in names:
        pk = Service.objects.get(service_id="text-model").pk
        client.post(reverse("matrix_cell", args=[pk]) + f"?side=input&name={name}", {"on": "1"})


def test_matrix_edits_of_a_user_within_five_minutes_are_grouped_into_one_line(admin: Client, demo: None) -> None:
    """Each of these edits can still be viewed and restored. Other actions have lines of their own."""
    before = newest_revision()
    edit_cells(admin, "vision", "audio", "video")
    set_alias("gpt-4o")
    page = Page(admin.get(reverse("history")))
    assert revision_ranges(page)[:2] == [f"{before + 4}", f"{before + 1}–{before + 3}"]
    edits = page.row(f"{before + 1}–")
    assert edits.chip("3 edits")
    assert reverse("restore", args=[before + 1]) in edits.link_urls


def test_matrix_edits_of_different_users_or_hours_are_separate_lines(admin: Client, demo: None) -> None:
    edit_cells(admin, "vision", "audio", "video")
    newest = newest_revision()
    Revision.objects.filter(number=newest).update(actor="eve")
    Revision.objects.filter(number=newest - 2).update(created_at=timezone.now() - timedelta(hours=2))
    assert revision_ranges(Page(admin.get(reverse("history"))))[:3] == [f"{newest}", f"{newest - 1}", f"{newest - 2}"]
