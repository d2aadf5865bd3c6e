"""The settings page: values and their sources, languages with Undo, retention, and recording of bodies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capabilities.actors import SYSTEM, Actor
from capabilities.errors import ConflictError
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.exports import export
from routing_admin.configuration.installation import RetentionSettings, directives, read_retention_settings
from routing_admin.console.demo import load as demo
from routing_admin.console.services.actions import save_service
from routing_admin.console.settings import actions
from routing_admin.console.settings.queries import read_dotenv, read_settings, setting_rows, strip_password
from routing_admin.core.files.exporting import FileFormat
from routing_admin.core.planning.plan import RoutingQuery, make_plan
from routing_admin.dispatch.model_endpoints import list_endpoints
from routing_admin.environment import SETTINGS
from routing_admin.models import AuditEvent, Installation, Language, Revision
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ACTOR = Actor("person", "admin")


def settings_form(client: Client, **changed: str) -> dict[str, str]:
    """Return the form data that the page posts with these changes."""
    form = client.get("/settings/").context["form"]
    values = {name: form[name].value() for name in form.fields} | {"shown": form.shown_text} | changed
    return {name: str(value) for name, value in values.items() if value not in (None, False)}


def save(client: Client, **changed: str) -> Any:
    return client.post("/settings/", settings_form(client, **changed))


def test_settings_page_shows_every_setting(viewer: Client) -> None:
    assert {setting.name for setting in SETTINGS} <= set(Page(viewer.get("/settings/")).rows)


def test_settings_page_shows_no_secret_of_the_environment(admin: Client, settings: Any) -> None:
    page = admin.get("/settings/").content.decode()
    for secret in (settings.SECRET_KEY, *settings.ENCRYPTION_KEYS, settings.ADMIN_PASSWORD):
        assert secret not in page


def test_settings_page_shows_the_artifact_bucket_without_credentials(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "s3://files/artifacts?region=eu-central-1"
    monkeypatch.setenv("ROUTING_ADMIN_ARTIFACTS_URL", address)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    answer = admin.get("/settings/")
    assert Page(answer).row("ROUTING_ADMIN_ARTIFACTS_URL").shows(address)
    assert "hunter2" not in answer.content.decode()


def displayed_settings(
    environment: dict[str, str], dotenv: dict[str, str], directory: Path
) -> dict[str, tuple[str, str, bool]]:
    return {
        row.setting.name: (row.value, row.source, row.is_set) for row in setting_rows(environment, dotenv, directory)
    }


def test_each_setting_names_its_source(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("s3cret")
    environment = {
        "ROUTING_ADMIN_PORT": "9000",
        "ROUTING_ADMIN_TIME_ZONE": "Asia/Shanghai",
        "LLM_API_KEY": "sk-value",
        "LLM_PROVIDER_QWEN_API_KEY": "sk-qwen",
        "LLM_PROVIDER_GLM_API_KEY": "sk-glm",
        "DATABASE_URL": "postgres://user:pass@host/db",
    }
    values = displayed_settings(environment, {"ROUTING_ADMIN_TIME_ZONE": "Asia/Shanghai"}, tmp_path)
    assert values["ROUTING_ADMIN_PORT"] == ("9000", "environment", True)
    assert values["ROUTING_ADMIN_TIME_ZONE"] == ("Asia/Shanghai", "dotenv", True)
    assert values["ROUTING_ADMIN_HOST"] == ("127.0.0.1", "default", False)
    assert values["ROUTING_ADMIN_DATA_DIR"] == (str(tmp_path), "default", False)
    assert values["ROUTING_ADMIN_SECRET_KEY"] == ("", "generated", True)
    assert values["LLM_API_KEY"] == ("", "environment", True)
    assert values["LLM_PROVIDER_{NAME}_API_KEY"] == (
        "LLM_PROVIDER_GLM_API_KEY,LLM_PROVIDER_QWEN_API_KEY",
        "environment",
        True,
    )
    assert values["DATABASE_URL"] == ("", "environment", True)
    assert not any(secret in str(values) for secret in ("sk-", "s3cret", "pass@"))


def test_environment_variable_overriding_the_dotenv_file_is_named_as_the_source(tmp_path: Path) -> None:
    values = displayed_settings({"ROUTING_ADMIN_PORT": "9000"}, {"ROUTING_ADMIN_PORT": "8000"}, tmp_path)
    assert values["ROUTING_ADMIN_PORT"] == ("9000", "environment", True)


def test_dotenv_assignments_are_parsed_without_comments_and_quotes(tmp_path: Path) -> None:
    """A missing file has no assignments."""
    (tmp_path / ".env").write_text("# ROUTING_ADMIN_HOST=x\nexport ROUTING_ADMIN_PORT='9000'\nLLM_MODEL = \"gpt\"\n")
    assert read_dotenv(tmp_path / ".env") == {"ROUTING_ADMIN_PORT": "9000", "LLM_MODEL": "gpt"}
    assert read_dotenv(tmp_path / "none") == {}


def test_urls_in_settings_are_shown_without_passwords() -> None:
    assert strip_password("http://user:pass@proxy:3128") == "http://proxy:3128"
    assert strip_password("https://example.org/a@b") == "https://example.org/a@b"


def test_changing_the_default_language_creates_one_revision_with_undo(admin: Client) -> None:
    demo.load()
    assert save(admin, default_language="en").status_code == 302
    number = Revision.objects.latest("number").number
    assert Page(admin.get("/settings/")).form(f"/undo/{number}/")
    assert make_plan(snapshot.current().configuration, RoutingQuery()).directive == "Please respond in English."
    admin.post(f"/undo/{number}/")
    assert Revision.objects.latest("number").message == "configuration.undo"
    assert snapshot.current().configuration.default_language == "zh"


def test_changing_the_content_policy_creates_one_revision_with_undo(admin: Client) -> None:

    def policies(service: str) -> set[str]:
        endpoint = list_endpoints(snapshot.current()).get(service)
        assert endpoint is not None
        return set(endpoint.reader.policies)

    demo.load()
    assert policies("text-model") == {"extract", "convert"}
    assert save(admin, content_policy="describe").status_code == 302
    number = Revision.objects.latest("number").number
    assert policies("text-model") == {"describe"}
    assert '"contentPolicy": "describe"' in export(FileFormat.ROUTING).text
    admin.post(f"/undo/{number}/")
    assert policies("text-model") == {"extract", "convert"}
    row = Service.objects.get(service_id="text-model")
    row.content = {"policy": "native_only"}
    save_service(SYSTEM, row)
    assert (policies("text-model"), policies("vision-model")) == ({"native_only"}, {"extract", "convert"})


def test_unknown_content_policy_is_rejected(admin: Client) -> None:
    assert save(admin, content_policy="magic").status_code == 422
    assert Installation.current().content_policy == ""


def test_directive_of_an_added_language_is_sent_to_the_model(admin: Client) -> None:
    demo.load()
    answer = admin.post(reverse("settings_language_save"), {"code": "pt", "directive": "Responda em português."})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/settings/")
    plan = make_plan(snapshot.current().configuration, RoutingQuery(language="pt-BR"))
    assert (plan.language, plan.directive) == ("pt", "Responda em português.")
    assert Page(admin.get("/settings/")).row("pt").shows("Responda em português.")


@pytest.mark.parametrize(
    ("code", "directive", "error"),
    [
        ("not a code", "x", "A language code has letters"),
        ("", "x", "Fill this in."),
        ("pt", " ", "Fill this in."),
    ],
)
def test_invalid_language_form_keeps_the_entered_value(admin: Client, code: str, directive: str, error: str) -> None:
    page = admin.post(reverse("settings_language_save"), {"code": code, "directive": directive}, headers=HTMX)
    assert page.status_code == 422
    assert error in Page(page).error("Directive" if error == "Fill this in." and code else "Code")
    code_field = Page(page).field("Code")
    assert code_field
    assert code_field.value == code
    assert not Page(page).is_document
    assert Page(page).heading("Languages of answers")
    assert not Language.objects.exists()


def test_unknown_default_language_is_rejected(admin: Client) -> None:
    assert save(admin, default_language="xx").status_code == 422
    assert not Revision.objects.exists()


def test_directive_of_the_default_language_cannot_be_removed(admin: Client) -> None:
    """Removing the default language returns 409 with the reason, and its button is disabled.

    It can be removed once another language is the default.
    """
    actions.save_language(ACTOR, "pt", "Responda em português.")
    actions.set_default_language(ACTOR, "pt")
    refused = admin.post(reverse("settings_language_remove"), {"code": "pt"}, headers=HTMX)
    assert refused.status_code == 409
    assert "pt is the default language. Choose another default first." in Page(refused).alert
    buttons = [control for control in Page(admin.get("/settings/")).row("pt").controls if control.tag == "button"]
    assert [button.is_disabled for button in buttons] == [True]
    actions.set_default_language(ACTOR, "en")
    assert admin.post(reverse("settings_language_remove"), {"code": "pt"}).status_code == 302
    assert not Language.objects.exists()


def test_removing_a_changed_built_in_language_restores_the_built_in_directive(admin: Client) -> None:
    """Even the default language can be removed in this way, because its built-in directive remains."""
    actions.save_language(ACTOR, "zh", "请用简体中文回答。")
    actions.set_default_language(ACTOR, "zh")
    assert directives()["zh"] == "请用简体中文回答。"
    assert admin.post(reverse("settings_language_remove"), {"code": "zh"}).status_code == 302
    assert directives()["zh"] == "请使用中文回答。"


def test_changing_retention_is_audited_and_creates_no_revision(admin: Client) -> None:
    assert save(admin, request_days="7", quota_bytes="512").status_code == 302
    assert read_retention_settings() == RetentionSettings(7, None, 512 * 1024 * 1024)
    event = AuditEvent.objects.get(action="installation.retention")
    assert event.details == {"request_days": [30, 7], "quota_bytes": [None, 512 * 1024 * 1024]}
    assert not Revision.objects.exists()


def test_saving_all_settings_at_once_creates_one_revision(admin: Client) -> None:
    """Settings that belong to the configuration become a single revision, which can be undone.

    Other settings are saved and audited.
    """
    demo.load()
    before = Revision.objects.count()
    changes = {"default_language": "en", "content_policy": "describe", "request_days": "9", "record_bodies": "on"}
    assert save(admin, **changes).status_code == 302
    assert Revision.objects.count() == before + 1
    row = Installation.current()
    assert (row.default_language, row.content_policy, row.request_days) == ("en", "describe", 9)
    assert row.record_bodies
    admin.post(f"/undo/{Revision.objects.latest('number').number}/")
    row = Installation.current()
    assert (row.default_language, row.content_policy, row.request_days) == ("zh", "", 9)


def test_saving_unchanged_settings_creates_no_revision_or_audit_event(admin: Client) -> None:
    assert save(admin).status_code == 302
    assert not AuditEvent.objects.exists()
    assert not Revision.objects.exists()


@pytest.mark.parametrize("days", ["0", "-1", "soon", "", "99999999"])
def test_invalid_retention_days_keep_the_entered_values(admin: Client, days: str) -> None:
    page = save(admin, request_days=days, quota_bytes="12345")
    assert page.status_code == 422
    space = Page(page).field("Space for artifacts, MiB")
    assert space
    assert space.value == "12345"
    assert Page(page).error("Days requests are kept")
    assert read_retention_settings() == RetentionSettings(30)


def test_every_problem_is_listed_and_counted_beside_its_section(admin: Client) -> None:
    page = save(admin, request_days="0", quota_bytes="much", default_language="xx", content_policy="describe")
    assert page.status_code == 422
    problems = Page(page).control("problems")
    assert problems
    assert problems.link_urls == ["#id_default_language", "#id_request_days", "#id_quota_bytes"]
    assert {part["id"]: part["count"] for part in page.context["parts"] if part["count"]} == {
        "languages": 1,
        "retention": 2,
    }
    assert not Revision.objects.exists()


def test_settings_save_bar_names_the_changed_settings(admin: Client) -> None:
    changed = settings_form(admin, act="changes", request_days="7", content_policy="describe")
    bar = admin.post("/settings/", changed, headers=HTMX)
    assert not Page(bar).is_document
    for words in ("2 changes", "Days requests are kept: 7", "describe what the model cannot read"):
        assert Page(bar).shows(words)
    unchanged = Page(admin.post("/settings/", settings_form(admin, act="changes"), headers=HTMX))
    assert unchanged.shows("No changes")
    assert read_retention_settings() == RetentionSettings(30)


def test_conflicting_settings_save_shows_both_versions(admin: Client) -> None:
    form = settings_form(admin, request_days="7")
    actions.set_retention(Actor("person", "olga"), RetentionSettings(90))
    page = admin.post("/settings/", form)
    assert page.status_code == 409
    assert [row.text for row in Page(page).table_rows][:1] == ["Days requests are kept 90 7"]
    mine = Page(page).field("Days requests are kept")
    assert mine
    assert mine.value == "7"
    assert read_retention_settings() == RetentionSettings(90)
    shown = Page(page).hidden("shown")
    assert shown
    assert admin.post("/settings/", {**form, "shown": shown}).status_code == 302
    assert read_retention_settings() == RetentionSettings(7)


def test_concurrent_change_of_another_field_is_kept(admin: Client) -> None:
    form = settings_form(admin, content_policy="describe")
    actions.set_retention(Actor("person", "olga"), RetentionSettings(90, quota_bytes=1_500_000))
    assert admin.post("/settings/", form).status_code == 302
    assert read_retention_settings() == RetentionSettings(90, quota_bytes=1_500_000)
    assert Installation.current().content_policy == "describe"


def test_save_settings_raises_a_conflict_if_the_stored_value_is_unexpected() -> None:
    changes = {"request_days": 7, "content_policy": "describe"}
    with pytest.raises(ConflictError):
        actions.save_settings(ACTOR, changes, expected={**read_settings(), "request_days": 31})
    assert not AuditEvent.objects.exists()


def test_recording_bodies_requires_confirmation_of_a_warning(admin: Client) -> None:
    assert Installation.current().record_bodies is False
    recording = Page(admin.get("/settings/")).region("Recording")
    assert recording.shows("editors and administrators can read everything")
    save(admin, record_bodies="on")
    assert Installation.current().record_bodies is True
    save(admin, record_bodies="")
    assert Installation.current().record_bodies is False
    assert [event.details for event in AuditEvent.objects.order_by("id")] == [{"on": True}, {"on": False}]


def test_demo_data_can_be_removed_with_one_click_and_restored_with_undo(admin: Client) -> None:
    """The section for removing the demo is shown only while there is demo data."""
    demo.load()
    assert Page(admin.get("/settings/")).button("Delete demo data")
    admin.post(reverse("demo_remove"))
    assert snapshot.current().configuration.routes == ()
    assert not Page(admin.get("/settings/")).shows("Delete demo data")
    admin.post(f"/undo/{Revision.objects.latest('number').number}/")
    assert snapshot.current().configuration.routes != ()


ACTS = (
    "settings_language_save",
    "settings_language_remove",
    "settings_rate_set",
    "settings_rate_remove",
    "demo_remove",
)


@pytest.mark.parametrize("name", ACTS)
def test_settings_actions_of_a_viewer_return_403(viewer: Client, name: str) -> None:
    assert viewer.post(reverse(name), {"code": "pt", "directive": "x"}).status_code == 403
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ACTS)
def test_get_request_to_a_settings_action_returns_405(admin: Client, name: str) -> None:
    assert admin.get(reverse(name)).status_code == 405
    assert not AuditEvent.objects.exists()


def test_viewer_cannot_save_settings(viewer: Client) -> None:
    assert viewer.post("/settings/", {"record_bodies": "1"}).status_code == 403
    assert not AuditEvent.objects.exists()


def test_viewer_sees_settings_without_a_form(viewer: Client) -> None:
    answer = viewer.get("/settings/")
    page = Page(answer)
    assert page.shows("Changing settings needs the administrator role.")
    assert not page.control("settings")
    assert not page.control("save")
    assert all(answer.context["form"][name].field.disabled for name in answer.context["form"].fields)


def test_long_environment_lists_show_the_count_and_collapse_the_rest(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTING_ADMIN_ALLOWED_ORIGINS", ",".join(f"http://gpu-{number}:8000" for number in range(40)))
    row = Page(admin.get("/settings/")).row("ROUTING_ADMIN_ALLOWED_ORIGINS")
    assert row.shows("40 entries")
    (rest,) = (control for control in row.controls if control.tag == "details")
    assert len(re.findall(r"gpu-\d+", rest.text)) == 37
    assert re.findall(r"gpu-\d+", row.text.replace(rest.text, "")) == ["gpu-0", "gpu-1", "gpu-2"]


def test_environment_variable_names_break_only_at_underscores(admin: Client) -> None:
    row = Page(admin.get("/settings/")).row("ROUTING_ADMIN_DATA_DIR")
    name = row.shows("ROUTING_ADMIN_DATA_DIR")
    assert name
    assert [child if isinstance(child, str) else child.tag for child in name.children] == [
        *("ROUTING_", "wbr", "ADMIN_", "wbr", "DATA_", "wbr", "DIR")
    ]


def test_settings_page_query_count_does_not_depend_on_the_amount_of_data(admin: Client) -> None:
    query_count = count_queries(admin, "/settings/")
    for number in range(20):
        Language.objects.create(code=f"x{number}", directive="x")
    assert count_queries(admin, "/settings/") == query_count
