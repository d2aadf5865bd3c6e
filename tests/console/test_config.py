"""Exporting and importing the configuration in the browser: problems with lines, differences, applying, conflicts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from capabilities.actors import Actor
from capabilities.models import Provider
from routing_admin.configuration import exports
from routing_admin.console.exchange.omissions import PLURALS
from routing_admin.console.providers.actions import KeyAct, KeyChange, enable_providers, save_provider
from routing_admin.console.routes.actions import save_alias, save_route
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.core.files.importing import FileFormat
from routing_admin.models import Revision, TaskRoute
from tests.cast import load_demo
from tests.console.page import Page
from tests.console.visits import newest_revision, offered_undo, response_text

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
ROOT = Path(__file__).parents[2]
SECRET = "sk-live-0123456789abcdef"
FILE: dict[str, Any] = {
    "providers": [
        {
            "providerName": "deepseek",
            "apiKey": SECRET,
            "endpoint": "https://api.deepseek.com/chat/completions",
            "defaultModel": "deepseek-chat",
            "region": "cn",
        }
    ],
    "routing": {"default": {"provider": "deepseek"}, "review": {"provider": "deepseek", "fallback": ["deepseek"]}},
}


def config_json(**changes: Any) -> str:
    return json.dumps(FILE | changes, indent=2)


def shown_changes(page: Page) -> list[str]:
    return [item.text for item in page.region("Changes").items]


def import_files(client: Client, *texts: str, **fields: Any) -> Any:
    return client.post(reverse("config_import"), {"text": list(texts), "mode": "merge", **fields})


@pytest.mark.parametrize("mode", ["full", "seed", "gateway"])
def test_downloads_of_each_export_mode_equal_the_export_command_output(admin: Client, demo: None, mode: str) -> None:
    page = Page(admin.get(reverse("config"), {"for": mode}))
    for name in FileFormat:
        assert f"{reverse('config_export', args=[name])}?for={mode}" in page.link_urls
        answer = admin.get(reverse("config_export", args=[name]), {"for": mode})
        assert answer.content.decode() == exports.export(name, exports.Mode(mode)).text
        assert f'filename="{name}.json"' in answer.headers["Content-Disposition"]


def test_export_omissions_are_counted_by_cause_and_link_to_the_filtered_list(admin: Client, demo: None) -> None:
    enable_providers(ADA, Provider.objects.exclude(name="echo"), enabled=False)
    for number in range(7):
        save_alias(ADA, f"alias-{number}", "task:design")
    page = Page(admin.get(reverse("config"), {"for": "seed"}))
    disabled = Provider.objects.filter(enabled=False).count()
    link = page.link(f"{disabled} providers are left out: they are disabled.")
    assert link.attributes["href"] == "/providers/?state=disabled"
    assert page.button("7 aliases cannot be expressed.")
    assert page.shows("alias-4")
    assert page.shows("alias-5") is None


def test_stored_keys_missing_from_export_files_link_to_the_providers(admin: Client, demo: None) -> None:
    for name in ("anthropic", "openai"):
        row = Provider.objects.get(name=name)
        save_provider(ADA, row, key=KeyChange(KeyAct.SET, SECRET))
    page = Page(admin.get(reverse("config")))
    text = "The stored keys of 2 providers are in no file. Set their variables, or enter them again after an import."
    assert page.link(text).attributes["href"] == "/providers/?key=stored"
    listed = Page(admin.get("/providers/?key=stored"))
    assert [listed.link(name) is None for name in ("anthropic", "openai", "Echo")] == [False, False, True]


def test_every_export_omission_message_has_a_plural_form() -> None:
    sources = "".join(
        (ROOT / "routing_admin/core/files" / name).read_text() for name in ("seed_export.py", "exporting.py")
    )
    written = set(re.findall(r'"([^"\n]*%\(names?\)s[^"\n]*)"', sources))
    assert written == set(PLURALS)


def test_viewer_can_open_the_configuration_page_but_not_export_or_import(viewer: Client, demo: None) -> None:
    page = Page(viewer.get(reverse("config")))
    assert page.shows("Exports need the editor role")
    assert not [control for control in page.controls if "download" in control.attributes]
    assert viewer.get(reverse("config_export", args=["llm-routing"])).status_code == 403
    assert import_files(viewer, config_json()).status_code == 403


@pytest.mark.parametrize("name", ["other", "llm-routing.json"])
def test_export_with_an_unknown_file_name_returns_404(admin: Client, name: str) -> None:
    assert admin.get(reverse("config_export", args=[name])).status_code == 404


def test_pasted_file_is_previewed_as_a_difference_without_changes(admin: Client, demo: None) -> None:
    before = newest_revision()
    page = import_files(admin, config_json())
    assert page.status_code == 200
    shown = Page(page)
    assert shown_changes(shown)[0].startswith("New provider deepseek")
    notes = shown.region("Notes")
    assert notes.shows("providers[0].region line 8, column 7")
    warning = next(item for item in notes.items if item.code("routing.review.fallback[0]"))
    assert warning.shows("line 18, column 9")
    assert shown.disclosure("Line by line").shows("deepseek")
    assert newest_revision() == before


def test_import_page_shows_a_key_only_within_the_pasted_text(admin: Client, demo: None) -> None:
    answer = import_files(admin, config_json(comment=f"Bearer {SECRET}"))
    (pasted,) = (control for control in Page(answer).controls if control.tag == "textarea")
    assert pasted.text.count(SECRET) == 2
    assert response_text(answer).count(SECRET) == 2


def test_applying_an_import_creates_one_revision_with_message_and_undo(admin: Client, demo: None) -> None:
    """The form itself contains the pasted text, so the session need not store it."""
    page = import_files(admin, config_json())
    form = {"expected": Page(page).hidden("expected"), "act": "apply", "message": "deepseek joins"}
    answer = admin.post(reverse("config_import"), {"text": [config_json()], "mode": "merge", **form}, follow=True)
    assert answer.redirect_chain == [(reverse("revision", args=[newest_revision()]), 302)]
    assert Revision.objects.get(number=newest_revision()).message == "deepseek joins"
    assert TaskRoute.objects.filter(task_type="review").exists()
    assert offered_undo(admin, answer) == newest_revision()
    admin.post(reverse("undo", args=[newest_revision()]))
    assert not TaskRoute.objects.filter(task_type="review").exists()


def test_replace_mode_removes_entries_missing_from_the_file(admin: Client, demo: None) -> None:
    merged, replaced = (
        [change for change in shown_changes(Page(import_files(admin, config_json(), mode=mode))) if "Removed" in change]
        for mode in ("merge", "replace")
    )
    assert merged == []
    assert any(change.startswith("Removed task route planning") for change in replaced)


def test_import_problems_name_path_and_line_and_prevent_the_import(admin: Client, demo: None) -> None:
    invalid_file = config_json(routing={"default": {"provider": "gone"}, "x": {"provider": "deepseek", "maxTokens": 0}})
    page = import_files(admin, invalid_file)
    assert page.status_code == 422
    problems = Page(page).region("2 problems prevent this import")
    for field, place in (
        ("routing.default.provider", "line 13, column 7"),
        ("routing.x.maxTokens", "line 17, column 7"),
    ):
        (problem,) = (item for item in problems.items if item.code(field))
        assert problem.shows(place)
    before = newest_revision()
    assert import_files(admin, invalid_file, act="apply", expected=before).status_code == 422
    assert newest_revision() == before


def test_invalid_json_error_names_line_and_column(admin: Client) -> None:
    page = import_files(admin, '{"providers": [,]}')
    assert page.status_code == 422
    assert Page(page).shows("line 1, column 16")
    assert [control.text for control in Page(page).controls if control.tag == "textarea"] == ['{"providers": [,]}']


def test_import_error_names_the_encoding_of_a_non_utf8_file(admin: Client) -> None:
    file = SimpleUploadedFile("llm-routing.json", '{"providers": "中文"}'.encode("gb18030"))
    page = admin.post(reverse("config_import"), {"file": file, "mode": "merge"})
    assert page.status_code == 422
    assert Page(page).shows("GB18030")


def test_uploading_both_files_at_once_is_one_import(admin: Client, demo: None) -> None:
    texts = {name: exports.export(name).text for name in FileFormat}
    files = [SimpleUploadedFile(f"{name}.json", body.encode()) for name, body in texts.items()]
    page = admin.post(reverse("config_import"), {"file": files, "mode": "replace"})
    assert page.status_code == 200
    shown = Page(page)
    assert shown.region("No changes")
    assert [
        text for text in ("recognized as task routing", "recognized as model services") if not shown.shows(text)
    ] == []


def test_applying_after_a_concurrent_change_returns_409_with_the_new_difference(admin: Client, demo: None) -> None:
    page = import_files(admin, config_json())
    revision_shown = Page(page).hidden("expected")
    save_route(ADA, TaskRoute(task_type="meanwhile"), [CandidateSpec("echo")])
    before = newest_revision()
    answer = import_files(admin, config_json(), act="apply", expected=revision_shown)
    assert answer.status_code == 409
    assert Page(answer).shows("changed in the meantime")
    assert (newest_revision(), Page(answer).hidden("expected")) == (before, str(before))
    assert import_files(admin, config_json(), act="apply", expected=before).status_code == 302
    assert TaskRoute.objects.filter(task_type="meanwhile").exists()


def test_first_import_is_compared_with_an_empty_configuration(admin: Client) -> None:
    """If another revision is created meanwhile, this is a conflict."""
    page = import_files(admin, config_json())
    assert Page(page).hidden("expected") == "0"
    assert Page(page).shows("against an empty configuration")
    load_demo()
    assert import_files(admin, config_json(), act="apply", expected=0).status_code == 409


def test_empty_import_asks_for_a_file_or_pasted_text(admin: Client) -> None:
    answer = admin.post(reverse("config_import"), {"text": "  "}, follow=True)
    assert Page(answer).shows("Choose a file, or paste its text")


def test_import_that_would_break_the_configuration_is_rejected_with_422(admin: Client, demo: None) -> None:
    """Valid files that would remove a service used by agents are rejected with 422 and a message for each agent."""
    before = newest_revision()
    answer = import_files(admin, '{"services": []}', mode="replace", act="apply", expected=before)
    assert answer.status_code == 422
    problems = Page(answer).region("3 problems prevent this import")
    assert problems.text.count("which would no longer exist") == 3
    assert newest_revision() == before


@pytest.mark.parametrize("count", [1, 37])
def test_warnings_of_the_same_kind_are_grouped_into_one_row(admin: Client, count: int) -> None:
    providers = [
        {**FILE["providers"][0], "providerName": f"host-{number}", "apiKey": f"${{LLM_PROVIDER_{number}_API_KEY}}"}
        for number in range(count)
    ]
    answer = import_files(admin, config_json(providers=providers, routing={"default": {"provider": "host-0"}}))
    page = Page(answer)
    notes = page.region("Notes")
    listed = notes.disclosures[0].items if count > 1 else []
    assert len(listed) == (21 if count == 37 else count - 1), "the last line counts those that are not listed"
    assert bool(page.shows("and 16 more")) == (count == 37), "those that are not listed are counted"
    assert bool(page.shows(f"{count - 1} more of this kind")) == (count > 1)
