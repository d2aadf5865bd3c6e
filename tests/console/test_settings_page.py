"""The settings page: values and their sources, languages with Undo, retention, recording."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capabilities.acts import SYSTEM, Actor
from capabilities.errors import ConflictError
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.exports import export
from routing_admin.configuration.installation import Keeping, directives, read_retention_settings
from routing_admin.console.demo import load as demo
from routing_admin.console.services.actions import save_service
from routing_admin.console.settings import actions
from routing_admin.console.settings.queries import read_dotenv, setting_rows, strip_password
from routing_admin.core.files.exporting import FileFormat
from routing_admin.core.planning.plan import RoutingQuery, make_plan
from routing_admin.dispatch.model_endpoints import list_endpoints
from routing_admin.environment import SETTINGS
from routing_admin.models import AuditEvent, Installation, Language, Revision
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import queries_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ACTOR = Actor("person", "admin")


def test_every_setting_is_on_the_page(viewer: Client) -> None:
    """Each setting is listed with its meaning, even for a viewer."""
    page = viewer.get("/settings/").content.decode()
    assert [setting.name for setting in SETTINGS if setting.name not in page] == []


def test_no_secret_of_the_environment_is_on_the_page(admin: Client, settings: Any) -> None:
    """For the signing key, encryption keys and passwords, the page shows only that they are set."""
    page = admin.get("/settings/").content.decode()
    for secret in (settings.SECRET_KEY, *settings.ENCRYPTION_KEYS, settings.ADMIN_PASSWORD):
        assert secret not in page


def test_the_bucket_of_artifacts_is_shown_and_its_credentials_are_not(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artifact store's URL is shown, but not the variables with its credentials."""
    address = "s3://files/artifacts?region=eu-central-1"
    monkeypatch.setenv("ROUTING_ADMIN_ARTIFACTS_URL", address)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    page = admin.get("/settings/").content.decode()
    assert address in page
    assert "hunter2" not in page


def in_force(environment: dict[str, str], dotenv: dict[str, str], directory: Path) -> dict[str, tuple[str, str, bool]]:
    return {
        row.setting.name: (row.value, row.source, row.is_set) for row in setting_rows(environment, dotenv, directory)
    }


def test_a_value_says_where_it_comes_from(tmp_path: Path) -> None:
    """The source of a setting is the environment, the file `.env`, a generated file, or the default."""
    (tmp_path / "secret_key").write_text("s3cret")
    environment = {
        "ROUTING_ADMIN_PORT": "9000",
        "ROUTING_ADMIN_TIME_ZONE": "Asia/Shanghai",
        "LLM_API_KEY": "sk-value",
        "LLM_PROVIDER_QWEN_API_KEY": "sk-qwen",
        "LLM_PROVIDER_GLM_API_KEY": "sk-glm",
        "DATABASE_URL": "postgres://user:pass@host/db",
    }
    values = in_force(environment, {"ROUTING_ADMIN_TIME_ZONE": "Asia/Shanghai"}, tmp_path)
    assert values["ROUTING_ADMIN_PORT"] == ("9000", "environment", True)
    assert values["ROUTING_ADMIN_TIME_ZONE"] == ("Asia/Shanghai", "dotenv", True)
    assert values["ROUTING_ADMIN_HOST"] == ("127.0.0.1", "default", False)
    assert values["ROUTING_ADMIN_DATA_DIR"] == (str(tmp_path), "default", False)
    assert values["ROUTING_ADMIN_SECRET_KEY"] == ("", "generated", True)
    assert values["LLM_API_KEY"] == ("", "environment", True)
    assert values["LLM_PROVIDER_{NAME}_API_KEY"] == (
        "LLM_PROVIDER_GLM_API_KEY, LLM_PROVIDER_QWEN_API_KEY",
        "environment",
        True,
    )
    assert values["DATABASE_URL"] == ("", "environment", True)
    assert not any(secret in str(values) for secret in ("sk-", "s3cret", "pass@"))


def test_an_environment_that_overrules_the_file_is_named_as_the_source(tmp_path: Path) -> None:
    values = in_force({"ROUTING_ADMIN_PORT": "9000"}, {"ROUTING_ADMIN_PORT": "8000"}, tmp_path)
    assert values["ROUTING_ADMIN_PORT"] == ("9000", "environment", True)


def test_a_dotenv_file_is_read_for_its_assignments(tmp_path: Path) -> None:
    """Comments and quotes of a `.env` file are removed. A missing file has no assignments."""
    (tmp_path / ".env").write_text("# ROUTING_ADMIN_HOST=x\nexport ROUTING_ADMIN_PORT='9000'\nLLM_MODEL = \"gpt\"\n")
    assert read_dotenv(tmp_path / ".env") == {"ROUTING_ADMIN_PORT": "9000", "LLM_MODEL": "gpt"}
    assert read_dotenv(tmp_path / "none") == {}


def test_an_address_is_shown_without_the_password_in_it() -> None:
    """A URL, for example of a proxy, is shown without its password."""
    assert strip_password("http://user:pass@proxy:3128") == "http://proxy:3128"
    assert strip_password("https://example.org/a@b") == "https://example.org/a@b"


def test_the_default_language_is_one_revision_and_undo_takes_it_back(admin: Client) -> None:
    """The change is one revision, which can be undone, and also changes the language directive sent to models."""
    demo.load()
    answer = admin.post(reverse("settings_default_language"), {"default_language": "en"}, headers=HTMX)
    assert answer.status_code == 200
    number = Revision.objects.latest("number").number
    assert f"/undo/{number}/" in answer.headers["HX-Trigger"]
    assert make_plan(snapshot.current().configuration, RoutingQuery()).directive == "Please respond in English."
    admin.post(f"/undo/{number}/")
    assert Revision.objects.latest("number").message == "configuration.undo"
    assert snapshot.current().configuration.default_language == "zh"


def test_content_policy_is_one_revision_and_the_default(admin: Client) -> None:
    """Changing the content policy is one revision with Undo. A service's own policy overrides it."""

    def policies(service: str) -> set[str]:
        endpoint = list_endpoints(snapshot.current()).get(service)
        assert endpoint is not None
        return set(endpoint.reader.policies)

    demo.load()
    assert policies("text-model") == {"extract", "convert"}
    answer = admin.post(reverse("settings_content_policy"), {"content_policy": "describe"}, headers=HTMX)
    assert answer.status_code == 200
    number = Revision.objects.latest("number").number
    assert policies("text-model") == {"describe"}
    assert '"contentPolicy": "describe"' in export(FileFormat.ROUTING).text
    admin.post(f"/undo/{number}/")
    assert policies("text-model") == {"extract", "convert"}
    row = Service.objects.get(service_id="text-model")
    row.content = {"policy": "native_only"}
    save_service(SYSTEM, row)
    assert (policies("text-model"), policies("vision-model")) == ({"native_only"}, {"extract", "convert"})


def test_unknown_content_policy_is_refused(admin: Client) -> None:
    """An unknown content policy is rejected with 422, and nothing is written."""
    answer = admin.post(reverse("settings_content_policy"), {"content_policy": "magic"}, headers=HTMX)
    assert answer.status_code == 422
    assert Installation.current().content_policy == ""


def test_added_language_is_sent_to_the_model(admin: Client) -> None:
    """The directive of an added language is used for requests in that language."""
    demo.load()
    answer = admin.post(reverse("settings_language_save"), {"code": "pt", "directive": "Responda em português."})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/settings/")
    plan = make_plan(snapshot.current().configuration, RoutingQuery(language="pt-BR"))
    assert (plan.language, plan.directive) == ("pt", "Responda em português.")
    assert "Responda em português." in admin.get("/settings/").content.decode()


@pytest.mark.parametrize(
    ("code", "directive", "error"),
    [
        ("not a code", "x", "A language code has letters"),
        ("", "x", "Fill this in."),
        ("pt", " ", "Fill this in."),
    ],
)
def test_a_wrong_language_keeps_what_was_typed(admin: Client, code: str, directive: str, error: str) -> None:
    """An invalid language is rejected with 422. The message is at its field, and the entry is kept."""
    page = admin.post(reverse("settings_language_save"), {"code": code, "directive": directive}, headers=HTMX)
    text = page.content.decode()
    assert page.status_code == 422
    assert error in text
    code_field = Page(page).field("Code")
    assert code_field
    assert code_field.value == code
    assert not Page(page).is_whole
    assert Page(page).heading("Languages of answers")
    assert not Language.objects.exists()


def test_an_unknown_default_language_is_refused(admin: Client) -> None:
    """An unknown default language is rejected with 422, and nothing is written."""
    assert admin.post(reverse("settings_default_language"), {"default_language": "xx"}).status_code == 422
    assert not Revision.objects.exists()


def test_the_default_language_cannot_lose_its_directive(admin: Client) -> None:
    """Removing the default language returns 409 with the reason, and its button is disabled.

    It can be removed once another language is the default.
    """
    actions.save_language(ACTOR, "pt", "Responda em português.")
    actions.set_default_language(ACTOR, "pt")
    refused = admin.post(reverse("settings_language_remove"), {"code": "pt"}, headers=HTMX)
    assert refused.status_code == 409
    assert "pt is the default language. Choose another default first." in refused.content.decode()
    assert re.search(r'value="pt" disabled', admin.get("/settings/").content.decode())
    actions.set_default_language(ACTOR, "en")
    assert admin.post(reverse("settings_language_remove"), {"code": "pt"}).status_code == 302
    assert not Language.objects.exists()


def test_a_built_in_language_gets_its_own_directive_back(admin: Client) -> None:
    """Removing a changed directive of `en` or `zh` restores the built-in directive, even for the default language."""
    actions.save_language(ACTOR, "zh", "请用简体中文回答。")
    actions.set_default_language(ACTOR, "zh")
    assert directives()["zh"] == "请用简体中文回答。"
    assert admin.post(reverse("settings_language_remove"), {"code": "zh"}).status_code == 302
    assert directives()["zh"] == "请使用中文回答。"


def test_retention_is_saved_and_audited_without_a_revision(admin: Client) -> None:
    """Retention is not part of the configuration.

    Saving makes no revision, and the audit log has old and new values.
    """
    form = {"request_days": "7", "artifact_days": "", "quota": "512", "expected": "30 None None None"}
    assert admin.post(reverse("settings_retention"), form).status_code == 302
    assert read_retention_settings() == Keeping(7, None, 512 * 1024 * 1024)
    event = AuditEvent.objects.get(action="installation.retention")
    assert event.details == {"request_days": [30, 7], "quota_bytes": [None, 512 * 1024 * 1024]}
    assert not Revision.objects.exists()


@pytest.mark.parametrize("days", ["0", "-1", "soon", "", "99999999"])
def test_wrong_days_keep_what_was_typed(admin: Client, days: str) -> None:
    """An invalid number of days is rejected with 422. The entries are kept, and nothing is saved."""
    form = {"request_days": days, "quota": "12345"}
    page = admin.post(reverse("settings_retention"), form, headers=HTMX)
    assert page.status_code == 422
    space = Page(page).field("Space for artifacts, MiB")
    assert space
    assert space.value == "12345"
    assert Page(page).error("Days requests are kept")
    assert read_retention_settings() == Keeping(30)


def test_conflicting_retention_change_shows_both_versions(admin: Client) -> None:
    """Saving over another user's change of the retention returns 409 with both versions. Saving again overwrites it."""
    actions.keep(Actor("person", "olga"), Keeping(90))
    form = {"request_days": "7", "expected": "30 None None None"}
    page = admin.post(reverse("settings_retention"), form, headers=HTMX)
    text = page.content.decode()
    assert page.status_code == 409
    assert "days for requests 90" in text
    mine = Page(page).field("Days requests are kept")
    assert mine
    assert mine.value == "7"
    assert read_retention_settings() == Keeping(90)
    assert Page(page).hidden("expected") == "90 None None None"
    assert admin.post(reverse("settings_retention"), {**form, "expected": "90 None None None"}).status_code == 302
    assert read_retention_settings() == Keeping(7)


def test_an_action_refuses_what_it_did_not_expect() -> None:
    """The action raises `ConflictError` if the stored retention is not the expected one."""
    with pytest.raises(ConflictError):
        actions.keep(ACTOR, Keeping(7), expected=Keeping(31))
    assert not AuditEvent.objects.exists()


def test_bodies_are_recorded_only_after_a_confirmed_warning(admin: Client) -> None:
    """Bodies are not recorded by default. Turning it on shows the risk, and both changes are audited."""
    assert Installation.current().record_bodies is False
    page = admin.post(reverse("settings_bodies"), {"record_bodies": "1"}, headers=HTMX).content.decode()
    assert "Editors and administrators can now read everything" in page
    assert Installation.current().record_bodies is True
    admin.post(reverse("settings_bodies"), {})
    assert Installation.current().record_bodies is False
    assert [event.details for event in AuditEvent.objects.order_by("id")] == [{"on": True}, {"on": False}]


def test_demo_data_goes_with_one_click_and_comes_back_with_undo(admin: Client) -> None:
    """The section for removing the demo is shown only while there is demo data."""
    demo.load()
    assert "Delete demo data" in admin.get("/settings/").content.decode()
    admin.post(reverse("demo_remove"))
    assert snapshot.current().configuration.routes == ()
    assert "Delete demo data" not in admin.get("/settings/").content.decode()
    admin.post(f"/undo/{Revision.objects.latest('number').number}/")
    assert snapshot.current().configuration.routes != ()


ACTS = (
    "settings_content_policy",
    "settings_default_language",
    "settings_language_save",
    "settings_language_remove",
    "settings_retention",
    "settings_rate_set",
    "settings_rate_remove",
    "settings_bodies",
    "demo_remove",
)


@pytest.mark.parametrize("name", ACTS)
def test_a_viewer_changes_nothing_and_reading_never_does(viewer: Client, admin: Client, name: str) -> None:
    """Every action on settings returns 403 to a viewer, and 405 to a GET."""
    assert viewer.post(reverse(name), {"code": "pt", "directive": "x", "record_bodies": "1"}).status_code == 403
    assert admin.get(reverse(name)).status_code == 405
    assert not AuditEvent.objects.exists()


def test_a_viewer_sees_values_and_no_form(viewer: Client) -> None:
    """A viewer sees no forms, and the page says which role is needed."""
    page = viewer.get("/settings/").content.decode()
    assert "Changing settings needs the administrator role." in page
    assert f'action="{reverse("settings_retention")}"' not in page


def test_the_page_asks_the_same_few_questions_however_much_there_is(admin: Client) -> None:
    query_count = queries_of(admin, "/settings/")
    for number in range(20):
        Language.objects.create(code=f"x{number}", directive="x")
    assert queries_of(admin, "/settings/") == query_count
