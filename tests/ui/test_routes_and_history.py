"""Task routes, configuration and history in a browser: dragging, keyboard, drafts, conflicts, and without
JavaScript.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from capabilities.actors import Actor
from routing_admin.console.demo.load import load_files
from routing_admin.console.routes.actions import save_alias, save_route
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import Revision, TaskRoute

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
ADA = Actor("person", "ada")
DESIGN = ["echo/echo-503", "echo/echo-vision", "echo/echo-text"]
NAMES = "#chain [data-item]"
FILE = json.dumps(
    {
        "providers": [
            {"providerName": "echo", "apiKey": "NOT_NEEDED", "endpoint": "echo://local", "defaultModel": "echo-text"}
        ],
        "routing": {"default": {"provider": "echo"}, "review": {"provider": "echo", "fallback": ["echo"]}},
    }
)


def shown_models(page: Any) -> list[str]:
    return [str(card.get_attribute("data-name")) for card in page.locator(NAMES).all()]


def stored_models(task_type: str = "design") -> list[str]:
    return [str(item) for item in TaskRoute.objects.get(task_type=task_type).candidates.all()]


def test_chain_can_be_edited_by_keyboard_then_saved_and_undone(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    admin_page.locator("#up-3").focus()
    admin_page.keyboard.press("Enter")
    expect(admin_page.locator("#savebar")).to_contain_text("echo/echo-text moved from 3 to 2")
    expect(admin_page.locator("#up-3")).to_be_focused()
    expect(admin_page.locator("#announce")).to_have_text("echo/echo-text, now 2 of 3")
    expect(admin_page.locator(".hop").first).to_contain_text("From here on, images arrive as descriptions")
    assert stored_models() == DESIGN
    admin_page.locator(".cand:has(#id_c-3-temperature) summary").click()
    admin_page.locator("#id_c-3-temperature").fill("0.3")
    admin_page.locator("#id_c-3-temperature").blur()
    expect(admin_page.locator("#savebar")).to_contain_text("temperature of echo/echo-text set to 0.3")
    before = Revision.objects.count()
    admin_page.click("#save")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Saved design.")
    assert (stored_models(), Revision.objects.count()) == ([DESIGN[0], DESIGN[2], DESIGN[1]], before + 1)
    admin_page.locator("#toasts .toast").get_by_role("button", name="Undo").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Undone")
    assert stored_models() == DESIGN


def test_focus_moves_to_the_other_move_button_at_the_end_of_a_chain(admin_page: Any) -> None:
    """The first card cannot be moved up, so its Down button gets the focus.

    The lines between the cards remain in place.
    """
    admin_page.goto("/routes/design/")
    admin_page.locator("#up-2").press("Enter")
    expect(admin_page.locator("#down-2")).to_be_focused()
    expect(admin_page.locator("#announce")).to_have_text("echo/echo-vision, now 1 of 3")
    assert shown_models(admin_page) == [DESIGN[1], DESIGN[0], DESIGN[2]]


@pytest.mark.parametrize(("start", "end"), [(0, 2), (2, 0), (1, 2)])
def test_card_can_be_dragged_from_any_position_to_any_other(admin_page: Any, start: int, end: int) -> None:
    admin_page.goto("/routes/design/")
    names = shown_models(admin_page)
    origin = admin_page.locator("#chain .grip").nth(start).bounding_box()
    target = admin_page.locator(NAMES).nth(end).bounding_box()
    aim = target["y"] + (target["height"] - 12 if end > start else 4)
    admin_page.mouse.move(origin["x"] + 8, origin["y"] + 8)
    admin_page.mouse.down()
    # Move the pointer in steps, one per animation frame, as users do.
    for step in range(1, 21):
        admin_page.mouse.move(origin["x"] + 8, origin["y"] + 8 + (aim - origin["y"] - 8) * step / 20)
        admin_page.evaluate("() => new Promise(requestAnimationFrame)")
    admin_page.mouse.up()
    names.insert(end, names.pop(start))
    expect(admin_page.locator("#savebar")).to_contain_text("moved from")
    assert shown_models(admin_page) == names
    assert admin_page.locator("#chain > ol > li").evaluate_all("all => all.map(li => li.matches('.hop'))") == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_adding_and_removing_candidates_updates_the_chain_and_the_outcomes(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    admin_page.evaluate("window.sameDocument = true")
    admin_page.fill("#pick", "text-model")
    admin_page.click("#add")
    expect(admin_page.locator(NAMES)).to_have_count(4)
    expect(admin_page.locator("#outcomes select")).to_have_count(4)
    admin_page.click("#drop-1")
    expect(admin_page.locator(NAMES)).to_have_count(3)
    expect(admin_page.locator("#drop-2")).to_be_focused()
    assert admin_page.evaluate("window.sameDocument") is True
    assert stored_models() == DESIGN


@pytest.mark.parametrize("width", [1280, 390])
def test_picker_and_newest_card_stay_visible_while_adding_candidates(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], width: int
) -> None:
    page = sign_in(new_page(width=width))
    page.goto("/routes/design/")
    page.fill("#pick", "text-model")
    page.click("#add")
    expect(page.locator(NAMES)).to_have_count(4)
    top = page.locator("#add").bounding_box()["y"]
    for count in (5, 6, 7):
        page.fill("#pick", "text-model")
        page.click("#add")
        expect(page.locator(NAMES)).to_have_count(count)
        assert abs(page.locator("#add").bounding_box()["y"] - top) < 2
        newest, bar = page.locator(NAMES).last.bounding_box(), page.locator("#savebar").bounding_box()
        assert newest["y"] + newest["height"] <= bar["y"]
        assert page.locator("#pick").input_value() == ""


def test_simulating_a_draft_shows_the_outcome_of_each_candidate(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    admin_page.select_option("#out-1", "429")
    admin_page.select_option("#out-2", "503")
    admin_page.select_option("#sim-language", "zh")
    admin_page.click("#simulate-now")
    expect(admin_page.locator("#simulation b").first).to_have_text("Candidate 3, echo/echo-text, answers")
    expect(admin_page.locator("#simulation .chain .chip")).to_have_text(["429 ×3", "503 ×3", "200"])
    expect(admin_page.locator("#simulation .said").last).to_contain_text("请使用中文回答。")
    admin_page.click("#send-now")
    expect(admin_page.locator("#simulation b").first).to_have_text("Candidate 2, echo/echo-vision, answered")


def test_simulation_accepts_several_attachments_and_placeholders(admin_page: Any) -> None:
    load_files()
    admin_page.goto("/")
    admin_page.keyboard.press("g")
    admin_page.keyboard.press("t")
    expect(admin_page.locator("h1")).to_have_text("Simulate")
    admin_page.locator("summary", has_text="Attachments").click()
    admin_page.get_by_label("layout.png").check()
    admin_page.get_by_label("briefing.md").check()
    admin_page.locator("summary", has_text="Placeholders, by kind and size").click()
    admin_page.get_by_label("Audio").fill("1500, 20")
    admin_page.click("#simulate-now")
    expect(admin_page.locator("#simulation .said").first).to_contain_text("stand-in-2.mp3")
    expect(admin_page.locator("#simulation .said").first).to_contain_text("layout.png")


def test_conflicting_save_shows_both_versions_and_a_second_save_wins(admin_page: Any) -> None:
    admin_page.expected_complaints.append("409")
    admin_page.goto("/routes/design/")
    save_route(ADA, TaskRoute.objects.get(task_type="design"), [CandidateSpec("echo", "echo-text")])
    admin_page.click("#up-2")
    expect(admin_page.locator("#savebar")).to_contain_text("2 changes:")
    admin_page.click("#save")
    expect(admin_page.get_by_role("heading", name="Both versions")).to_be_visible()
    expect(admin_page.locator("[role=alert]")).to_contain_text("Someone else changed this in the meantime")
    admin_page.click("#save")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("Saved design.")
    assert stored_models() == [DESIGN[1], DESIGN[0], DESIGN[2]]


def test_chain_shows_losses_and_describer_of_each_candidate(admin_page: Any) -> None:
    admin_page.goto("/routes/planning/")
    expect(admin_page.locator(NAMES).nth(0)).not_to_contain_text("Primary")
    expect(admin_page.locator(NAMES).nth(2)).to_contain_text("Primary")
    admin_page.goto("/routes/design/")
    admin_page.click("#down-2")
    expect(admin_page.locator(".hop").nth(0)).to_contain_text("From here on, images arrive as descriptions")
    expect(admin_page.locator(".hop").nth(1)).not_to_contain_text("arrive as descriptions")


def test_consequences_are_shown_before_an_action(admin_page: Any) -> None:
    admin_page.expected_complaints.append("422")
    admin_page.goto("/services/echo-vision/")
    admin_page.get_by_role("button", name="Delete").click()
    dialog = admin_page.get_by_role("dialog", name="Delete echo-vision?")
    expect(dialog).to_contain_text("In design, echo/echo-vision gets images as descriptions.")
    dialog.get_by_role("button", name="Cancel").click()
    admin_page.locator("#id_enabled").uncheck()
    admin_page.get_by_role("button", name="Save", exact=True).click()
    expect(admin_page.locator("[role=alert]")).to_contain_text("design loses echo-vision.")
    admin_page.get_by_role("button", name="Save anyway").click()
    expect(admin_page.locator("#toasts .toast")).to_contain_text("echo-vision saved")
    expect(admin_page.locator("#id_enabled")).not_to_be_checked()


def test_switch_beside_the_route_name_changes_only_the_draft(admin_page: Any) -> None:
    admin_page.goto("/routes/design/")
    switch = admin_page.get_by_role("switch", name="Enabled")
    assert switch.bounding_box()["y"] < admin_page.locator("#chain").bounding_box()["y"]
    switch.focus()
    admin_page.keyboard.press("Space")
    expect(admin_page.locator("#changes")).to_contain_text("1 change")
    admin_page.locator("#down-1").click()  # The shortcut below also works after a click on another button.
    expect(admin_page.locator("#changes")).to_contain_text("2 changes")
    admin_page.keyboard.press("Control+Enter")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("design")
    expect(switch).not_to_be_checked()


def test_switch_in_a_route_row_saves_immediately(admin_page: Any) -> None:
    admin_page.goto("/routes/")
    admin_page.locator("#on-design").focus()
    admin_page.keyboard.press("Space")
    expect(admin_page.locator("#toasts .toast")).to_contain_text("design is disabled")
    expect(admin_page.locator("#on-design")).not_to_be_checked()
    admin_page.locator("#toasts .toast").get_by_role("button", name="Undo").click()
    expect(admin_page.locator("#on-design")).to_be_checked()


def test_chain_editor_simulation_and_import_work_without_javascript(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any]
) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/routes/design/")
    with page.expect_navigation():
        page.click("#down-1")
    assert shown_models(page) == [DESIGN[1], DESIGN[0], DESIGN[2]]
    page.click("#simulate-now")
    expect(page.locator("#simulation b").first).to_contain_text("echo-vision, answers")
    page.click("#save")
    expect(page.locator("#toasts .toast")).to_contain_text("design")
    assert stored_models() == [DESIGN[1], DESIGN[0], DESIGN[2]]
    page.goto("/config/")
    page.fill("#text", FILE)
    page.get_by_role("button", name="Show the difference").click()
    expect(page.locator("main")).to_contain_text("Applying creates revision")
    with page.expect_navigation():
        page.get_by_role("button", name="Apply 3 changes").click()
    assert stored_models("review") == ["echo/echo-text", "echo/echo-text"]
    with page.expect_navigation():
        page.locator("#toasts .toast").get_by_role("button", name="Undo").click()
    assert not TaskRoute.objects.filter(task_type="review").exists()


@pytest.mark.parametrize(("width", "scheme", "language"), [(1280, "light", "en"), (390, "dark", "zh-CN")])
def test_results_loaded_on_demand_are_accessible(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    width: int,
    scheme: str,
    language: str,
) -> None:
    """test_every_page.py checks these pages without the loaded results."""
    save_alias(ADA, "*", "task:default")
    page = sign_in(new_page(width=width, scheme=scheme, language=language))
    page.goto("/routes/design/")
    page.click("#simulate-now")
    page.locator("#simulation .delivery").first.wait_for()
    assert axe(page) == []
    page.goto("/config/")
    page.fill("#text", FILE)
    page.click("main form button[value=look]")
    page.locator(".savebar").wait_for()
    assert axe(page) == []
