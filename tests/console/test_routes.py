"""Task routes in the browser: list, draft in the chain editor, saving, conflicts, deletion, aliases."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capabilities.actors import Actor
from capabilities.core.wire import Fault
from routing_admin.configuration import snapshot
from routing_admin.console.routes.actions import save_route
from routing_admin.console.routes.draft import TaskType
from routing_admin.console.routes.errors import failure_in
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.core.files.exporting import routing_value
from routing_admin.models import Alias, Revision, TaskRoute
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries, newest_revision, offered_undo

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
DESIGN = ["echo/echo-503", "echo/echo-vision", "echo/echo-text"]


def route_url(task_type: str) -> str:
    return reverse("route", args=[task_type])


def draft(*cards: tuple[str, str, str], version: int | None = None, **fields: str) -> dict[str, Any]:
    """Return the form data that the chain editor posts. Each card is (id, provider/model, temperature)."""
    data: dict[str, Any] = {"card": [card for card, _, _ in cards], "preset": "seed", "enabled": "on", **fields}
    for card, name, temperature in cards:
        provider, _, model = name.partition("/")
        data |= {f"c-{card}-provider": provider, f"c-{card}-model": model, f"c-{card}-temperature": temperature}
    return data | ({"version": version} if version is not None else {})


def design(*order: int, **fields: Any) -> dict[str, Any]:
    cards = [(str(number), DESIGN[number - 1], "") for number in (order or (1, 2, 3))]
    return draft(*cards, version=TaskRoute.objects.get(task_type="design").version, **fields)


def card_ids(page: Page) -> list[str]:
    """Return the ids of the candidates' cards in the editor, in the order shown."""
    return [control.value for control in page.controls if control.attributes.get("name") == "card"]


def route_version(task_type: str) -> int:
    return TaskRoute.objects.get(task_type=task_type).version


def candidate_names(task_type: str) -> list[str]:
    return [str(item) for item in TaskRoute.objects.get(task_type=task_type).candidates.all()]


def test_route_list_begins_with_the_current_state(admin: Client, demo: None) -> None:
    page = Page(admin.get(reverse("routes")))
    assert page.shows("6 task routes are working")
    assert "chapter_generation" in page.rows
    assert page.row("design").shows("Candidate 3 gets images as descriptions")


def test_empty_route_list_explains_routes(admin: Client) -> None:
    page = Page(admin.get(reverse("routes")))
    assert reverse("route_new") in page.link_urls
    assert page.shows("Start with the route named default")


def test_route_list_query_count_is_the_same_for_three_and_thirty_routes(admin: Client, demo: None) -> None:
    counts = []
    for count in (3, 27):
        already = TaskRoute.objects.count()
        for number in range(already, already + count):
            save_route(ADA, TaskRoute(task_type=f"task-{number}"), [CandidateSpec("echo")])
        counts.append(count_queries(admin, reverse("routes")))
    assert counts[0] == counts[1]


def test_switching_a_route_returns_the_row_with_undo(admin: Client, demo: None) -> None:
    answer = admin.post(reverse("route_enabled", args=["design"]), {}, headers=HTMX)
    assert not TaskRoute.objects.get(task_type="design").enabled
    row = Page(answer)
    assert not row.is_document
    switch = row.switch("design enabled")
    assert switch
    assert not switch.is_checked
    revision = Revision.objects.first()
    assert revision is not None
    assert f"/undo/{revision.number}/" in answer.headers["HX-Trigger"]
    admin.post(reverse("undo", args=[revision.number]))
    assert TaskRoute.objects.get(task_type="design").enabled


def test_skipped_first_candidate_is_not_labelled_primary(admin: Client, demo: None) -> None:
    cards = [("1", "openai/gpt-5.6-sol", ""), ("2", "echo/echo-text", "")]
    page = Page(admin.post(route_url("design"), draft(*cards, act="check")))
    primary = [item.hidden("card") for item in page.items if item.hidden("card") and item.shows("Primary")]
    assert primary == ["2"]


def test_editor_names_the_losses_of_a_candidate_before_its_card(admin: Client, demo: None) -> None:
    page = Page(admin.get(route_url("design")))
    loss = page.shows("From here on, images arrive as descriptions")
    cards = [control for control in page.controls if control is loss or control.attributes.get("name") == "card"]
    assert [control.value for control in cards if control is not loss] == ["1", "2", "3"]
    assert cards.index(loss) == 2


@pytest.mark.parametrize(
    ("press", "order"),
    [
        ({"move": "3:up"}, ["1", "3", "2"]),
        ({"move": "1:down"}, ["2", "1", "3"]),
        ({"move": "1:up"}, ["1", "2", "3"]),
        ({"remove": "2"}, ["1", "3"]),
    ],
)
def test_move_and_remove_buttons_change_only_the_draft(
    admin: Client, demo: None, press: dict[str, str], order: list[str]
) -> None:
    before = Revision.objects.count()
    assert card_ids(Page(admin.post(route_url("design"), design(**press)))) == order
    assert (Revision.objects.count(), candidate_names("design")) == (before, DESIGN)


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ({"pick": "vision-model"}, "gpt-5.6-sol"),
        ({"pick": "echo/echo-new"}, "echo-new"),
        ({"pick": "echo/models/new"}, "models/new"),
        ({"pick": "echo/"}, ""),
    ],
)
def test_candidate_can_be_added_from_a_service_or_a_provider(
    admin: Client, demo: None, fields: dict[str, str], added: str
) -> None:
    answer = admin.post(route_url("design"), design(act="add", **fields))
    card = answer.context["draft"].cards[-1]
    assert (len(answer.context["draft"].cards), card.id, card.model or "") == (4, "4", added)


def test_unknown_candidate_is_rejected_at_the_field(admin: Client, demo: None) -> None:
    answer = admin.post(route_url("design"), design(act="check", pick="ecko/text"))
    pick = Page(answer).control("pick")
    assert pick
    assert (pick.tag, pick.attributes["value"], pick.attributes["aria-invalid"]) == ("input", "ecko/text", "true")
    problem = Page(answer).control(pick.attributes["aria-describedby"] or "")
    assert problem
    assert problem.name == "No model service or provider has this name."
    assert len(card_ids(Page(answer))) == 3
    added = admin.post(route_url("design"), design(act="check", pick="text-model"))
    assert len(card_ids(Page(added))) == 4
    field = Page(added).control("pick")
    assert field
    assert (field.attributes["value"], "aria-invalid" in field.attributes) == ("", False)


def test_candidate_without_a_service_is_marked_text_only(admin: Client, demo: None) -> None:
    """The capabilities of such a candidate are unknown."""
    answer = admin.post(route_url("design"), design(act="add", pick="echo/echo-new"))
    assert Page(answer).shows("Text only: no model service")


def test_save_bar_describes_the_changes(admin: Client, demo: None) -> None:
    data = draft(
        ("1", DESIGN[0], ""), ("3", DESIGN[2], "0.5"), ("2", DESIGN[1], ""), retries="0", version=1, act="check"
    )
    bar = Page(admin.post(route_url("design"), data)).text
    for change in (
        "echo/echo-text moved from 3 to 2",
        "temperature of echo/echo-text set to 0.5",
        "retries set to 0",
    ):
        assert change in bar


def test_htmx_response_to_a_draft_contains_only_the_form(admin: Client, demo: None) -> None:
    answer = admin.post(route_url("design"), design(move="3:up"), headers=HTMX)
    page = Page(answer)
    assert not page.is_document
    ids = [control.attributes.get("id") for control in page.controls]
    assert ids.index("chain") < ids.index("savebar")


def test_saving_a_route_creates_one_revision_with_undo(admin: Client, demo: None) -> None:
    before = Revision.objects.count()
    data = draft(("2", DESIGN[1], "0"), ("1", DESIGN[0], ""), version=1, act="save", preset="resilient", deadline="30")
    answer = admin.post(route_url("design"), data, follow=True)
    assert answer.redirect_chain == [(route_url("design"), 302)]
    row = TaskRoute.objects.get(task_type="design")
    assert candidate_names("design") == DESIGN[1::-1]
    assert row.candidates.first().temperature == 0  # type: ignore[union-attr]
    assert (row.on_error, row.deadline) == ("resilient", 30)
    assert Revision.objects.count() == before + 1
    admin.post(reverse("undo", args=[Revision.objects.first().number]))  # type: ignore[union-attr]
    assert candidate_names("design") == DESIGN


def test_simulation_during_a_save_leaves_the_toast_for_the_next_page(admin: Client, demo: None) -> None:
    """The editor simulates each change of the draft, also one made just before the click on Save."""
    admin.post(route_url("design"), design(3, 1, 2, act="save"))
    simulated = admin.post(route_url("design"), design(3, 1, 2), headers=HTMX)
    assert "HX-Trigger" not in simulated.headers
    assert offered_undo(admin, admin.get(route_url("design"))) == newest_revision()


def test_route_can_refuse_to_drop_parameters(admin: Client, demo: None) -> None:
    bar = Page(admin.post(route_url("design"), design(on_drop="refuse"))).control("savebar")
    assert bar
    assert bar.shows("what may be left out")
    admin.post(route_url("design"), design(act="save", on_drop="refuse"))
    assert TaskRoute.objects.get(task_type="design").on_drop == "refuse"
    assert routing_value(snapshot.current().configuration)["routing"]["design"]["onDrop"] == "refuse"
    admin.post(reverse("undo", args=[Revision.objects.first().number]))  # type: ignore[union-attr]
    assert TaskRoute.objects.get(task_type="design").on_drop == ""


def test_saving_an_unchanged_route_creates_no_revision(admin: Client, demo: None) -> None:
    before = Revision.objects.count()
    for task_type in ("design", "planning"):
        page = admin.get(route_url(task_type))
        data = draft(
            *((card.id, card.name, "") for card in page.context["draft"].cards),
            act="save",
            version=page.context["draft"].version,
            temperature=str(page.context["draft"].form["temperature"].value()),
            max_tokens=str(page.context["draft"].form["max_tokens"].value()),
        )
        admin.post(route_url(task_type), data)
    assert Revision.objects.count() == before


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"temperature": "3"}, "At most 2"),
        ({"max_tokens": "0"}, "At least 1"),
        ({"retries": "11"}, "At most 10"),
        ({"deadline": "x"}, "Enter a number"),
    ],
)
def test_invalid_route_form_keeps_every_value_and_shows_the_reason(
    admin: Client, demo: None, fields: dict[str, str], error: str
) -> None:
    answer = admin.post(route_url("design"), design(3, 1, 2, act="save", **fields))
    assert answer.status_code == 422
    assert error in Page(answer).alert
    assert card_ids(Page(answer)) == ["3", "1", "2"]
    assert candidate_names("design") == DESIGN


def test_saving_a_route_without_a_candidate_is_rejected(admin: Client, demo: None) -> None:
    answer = admin.post(route_url("design"), {"act": "save", "preset": "seed", "version": 1})
    assert answer.status_code == 422
    assert "needs a candidate" in Page(answer).alert


def test_conflicting_save_returns_409_and_shows_both_versions(admin: Client, demo: None) -> None:
    data = design(3, 2, 1, act="save")
    row = TaskRoute.objects.get(task_type="design")
    save_route(ADA, row, [CandidateSpec("echo", "echo-text")])
    answer = admin.post(route_url("design"), data)
    assert answer.status_code == 409
    conflict = Page(answer).region("Both versions")
    assert conflict.fact("Saved meanwhile").text == "echo/echo-text"
    assert conflict.fact("This draft").text == "echo/echo-text → echo/echo-vision → echo/echo-503"
    assert candidate_names("design") == ["echo/echo-text"]
    merged_form = {**data, "version": Page(answer).hidden("version")}
    assert admin.post(route_url("design"), merged_form).status_code == 302
    assert candidate_names("design") == DESIGN[::-1]


def test_new_route_is_a_draft_until_saved(admin: Client, demo: None) -> None:
    data = draft(("1", "echo/echo-text", ""), act="save", task_type="reviewing")
    assert admin.post(reverse("route_new"), data).status_code == 302
    assert candidate_names("reviewing") == ["echo/echo-text"]
    response = admin.post(reverse("route_new"), data)
    assert response.status_code == 422
    assert "A task route with this name already exists" in Page(response).alert


def test_saving_preserves_extra_body_and_unknown_fields_of_a_candidate(admin: Client, demo: None) -> None:
    row = TaskRoute.objects.get(task_type="design")
    candidate = CandidateSpec("echo", "echo-text", extra_body={"top_k": 3}, extra={"note": "kept"})
    save_route(ADA, row, [candidate, CandidateSpec("echo", "echo-vision")])
    data = draft(("2", DESIGN[1], ""), ("1", DESIGN[2], "0.1"), version=row.version, act="save")
    assert admin.post(route_url("design"), data).status_code == 302
    last = TaskRoute.objects.get(task_type="design").candidates.last()
    assert last is not None
    assert (last.extra_body, last.extra, last.temperature) == ({"top_k": 3}, {"note": "kept"}, 0.1)


def test_candidate_request_fields_are_edited_on_the_card_and_move_with_the_card(admin: Client, demo: None) -> None:
    """If two candidates have the same model, each keeps its own request fields.

    A value that is not an object is rejected.
    """
    response = admin.post(route_url("design"), {**design(**{"c-1-extra_body": "[1]"}), "act": "save"})
    assert response.status_code == 422
    assert Page(response).shows("Enter a JSON object.")
    cards = [("1", DESIGN[0], ""), ("2", DESIGN[1], ""), ("3", DESIGN[0], "")]
    fields = {"c-1-extra_body": '{"seed": 1}', "c-2-extra_body": "", "c-3-extra_body": '{"seed": true}'}
    admin.post(route_url("design"), {**draft(*cards, version=route_version("design"), **fields), "act": "save"})
    named = [control for control in Page(admin.get(route_url("design"))).controls if control.attributes.get("name")]
    assert '{"seed": true}' in [
        control.value.strip() for control in named if "extra_body" in control.attributes["name"]
    ]
    # If a page does not post the field, the stored value is kept.
    moved = draft(cards[1], cards[0], cards[2], version=route_version("design"))
    admin.post(route_url("design"), {**moved, "act": "save"})
    route = snapshot.current().configuration.route("design")
    assert route is not None
    assert [dict(candidate.extra_body) for candidate in route.candidates] == [{}, {"seed": 1}, {"seed": True}]
    top = draft(cards[0], cards[1], cards[2], version=route_version("design"))
    admin.post(route_url("design"), {**top, "act": "save"})
    assert routing_value(snapshot.current().configuration)["routing"]["design"]["primary"] == {"extraBody": {"seed": 1}}


def test_error_rule_of_a_route_overrides_the_preset(admin: Client, demo: None) -> None:
    answer = admin.post(route_url("design"), design(act="check", **{"on-404": "next"}))
    rows = {row.word: row for row in answer.context["policy"]}
    assert (rows["404"].action, rows["404"].own, rows["422"].action) == ("next", "next", "raise")
    admin.post(route_url("design"), design(act="save", **{"on-404": "next"}))
    assert TaskRoute.objects.get(task_type="design").on_error == {"404": "next"}


def test_pasted_error_shows_the_error_class_and_the_resulting_action(admin: Client, demo: None) -> None:
    """The gateway's own classifier determines the error class."""
    text = 'HTTP 429 {"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}'
    pasted = admin.post(route_url("design"), design(act="explain", error=text)).context["pasted"]
    assert (pasted.explanation.fault, pasted.explanation.verdict.action) == (Fault.HTTP_429_QUOTA, "next")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("503", Fault.HTTP_503),
        ("HTTP/1.1 401 Unauthorized", Fault.HTTP_401),
        ("Error code: 400 - {'error': 'maximum context length is 8192 tokens'}", Fault.CONTEXT_LENGTH),
        ("[Errno 111] Connection refused", Fault.CONNECT_REFUSED),
        ("httpx.ConnectTimeout: connect timed out", Fault.CONNECT_TIMEOUT),
        ("Temporary failure in name resolution", Fault.DNS_ERROR),
        ('{"error":{"type":"overloaded_error","message":"Overloaded"}}', Fault.HTTP_529),
        ("{broken", Fault.HTTP_500),
    ],
)
def test_pasted_errors_in_common_log_formats_are_classified(text: str, fault: Fault) -> None:
    assert failure_in(text).fault is fault


@pytest.mark.parametrize("act", ["save", "check"])
def test_viewer_can_see_but_not_change_routes(admin: Client, viewer: Client, demo: None, act: str) -> None:
    page = viewer.get(route_url("design"))
    assert Page(admin.post(route_url("design"), design(3, 2, 1, act="check"))).button("Save")
    assert Page(page).button("Save") is None
    assert Page(page).shows("needs the editor role")
    assert viewer.post(route_url("design"), design(3, 2, 1, act=act)).status_code == (403 if act == "save" else 200)
    assert viewer.post(reverse("route_delete", args=["design"])).status_code == 403
    assert candidate_names("design") == DESIGN


@pytest.mark.parametrize("name", ["planning", "写作", "a/b", "..", "new", "~x", "constructor", "100% ?#", "a b"])
def test_route_page_works_for_any_task_type_name(admin: Client, demo: None, name: str) -> None:
    assert TaskType().to_python(TaskType().to_url(name)) == name
    if not TaskRoute.objects.filter(task_type=name).exists():
        save_route(ADA, TaskRoute(task_type=name), [CandidateSpec("echo")])
    heading = next(control for control in Page(admin.get(route_url(name))).controls if control.tag == "h1")
    assert heading.text.startswith(" ".join(name.split()))
    assert admin.get(reverse("routes")).status_code == 200


def test_unknown_route_returns_404(admin: Client) -> None:
    assert admin.get(route_url("gone")).status_code == 404
    assert admin.get("/routes/~!!/").status_code == 404


def test_deleting_a_route_can_be_undone(admin: Client, demo: None) -> None:
    admin.post(reverse("route_delete", args=["design"]))
    assert not TaskRoute.objects.filter(task_type="design").exists()
    admin.post(reverse("undo", args=[Revision.objects.first().number]))  # type: ignore[union-attr]
    assert candidate_names("design") == DESIGN


def test_default_route_cannot_be_deleted_and_the_page_shows_the_reason(admin: Client, demo: None) -> None:
    assert Page(admin.get(route_url("default"))).region("Delete task route").shows("it must stay")
    admin.post(reverse("route_delete", args=["default"]))
    assert TaskRoute.objects.filter(task_type="default").exists()


def test_alias_can_be_added_and_deleted(admin: Client, demo: None) -> None:
    admin.post(reverse("alias"), {"name": "*", "target": "task:default"})
    assert Alias.objects.get().target == "task:default"
    admin.post(reverse("alias"), {"remove": "*"})
    assert not Alias.objects.exists()


def test_alias_of_an_unknown_target_is_rejected_at_the_field(admin: Client, demo: None) -> None:
    refused = admin.post(reverse("alias"), {"name": "gpt-4o", "target": "task:gone"})
    assert refused.status_code == 422
    assert Page(refused).shows("No task route or model service has this name")
    assert not Alias.objects.exists()


def test_aliases_are_paginated_in_natural_order(admin: Client, demo: None) -> None:
    for number in range(40):
        Alias.objects.create(name=f"alias-{number}", target=("task:default", "text-model")[number == 7])
    snapshot.refresh()
    first, second = (Page(admin.get(f"/aliases/?page={page}")) for page in (1, 2))
    assert first.rows == [f"alias-{number}" for number in range(25)]
    assert second.rows == [f"alias-{number}" for number in range(25, 40)]
    assert first.shows("1 to 25 of 40")
    assert Page(admin.get("/aliases/?q=text-model")).rows == ["alias-7"]
    sorted_page = Page(admin.get("/aliases/?sort=-target"))
    assert [
        control.name for control in sorted_page.controls if control.attributes.get("aria-sort") == "descending"
    ] == ["Points to"]
    assert "/aliases/" in Page(admin.get("/routes/")).link_urls


def test_fields_suggest_the_best_matches_for_the_typed_text(admin: Client, demo: None) -> None:
    """At most twenty options are suggested, starting with those that begin with the typed text.

    An alias can lead to a route or to a service, so both are suggested.
    """
    for number in range(30):
        TaskRoute.objects.create(task_type=f"re-{number}", position=100 + number)
    snapshot.refresh()
    assert len(suggested_options(admin, "/options/task/?task=RE-")) == 20
    assert suggested_options(admin, "/options/target/?target=text") == ["text-model", "echo-text"]
    assert "task:planning" in suggested_options(admin, "/options/target/?target=planning")
    assert admin.get("/options/secret/").status_code == 404


def suggested_options(client: Client, address: str) -> list[str]:
    return [control.value for control in Page(client.get(address)).controls if control.tag == "option"]


def test_simulating_a_task_type_without_a_route_names_the_default_route(admin: Client, demo: None) -> None:
    page = Page(admin.get("/simulate/?task=nothing"))
    assert page.shows("There is no task route nothing. The default route takes its requests.")
    assert Page(admin.get("/simulate/?task=planning")).shows("There is no task route") is None
