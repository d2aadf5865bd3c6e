"""A model service's page: what it reads and who says so, its limits, what the catalogue says."""

from __future__ import annotations

import pytest
from django.test import Client
from visitors import HTMX, client_of, demo, queries_of, text_of, undo_in

from capabilities.models import Provider, Service
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin() -> Client:
    demo()
    return client_of()


def form_of(row: Service, **changed: str) -> dict[str, str]:
    """What the form of a service posts."""
    tags = ", ".join(row.capability_tags)
    facts = {"name": row.name, "provider": str(row.provider.pk), "model": row.model, "description": row.description}
    return {
        **facts,
        "tags": tags,
        "enabled": "on",
        "policy": "",
        "limits_json": "",
        "version": str(row.version),
    } | changed


def test_a_new_service_begins_as_unknown_and_the_catalogue_helps(admin: Client) -> None:
    """Its page says what the catalogue reads with source and date; applying it fills every cell with that source."""
    openai = Provider.objects.get(name="openai")
    new = {"service_id": "gpt", "name": "gpt", "provider": openai.pk, "model": "gpt-4o", "enabled": "on"}
    answer = admin.post("/new/service/", new)
    page = text_of(admin.get(answer["Location"]))
    assert "What does gpt-4o read?" in page
    assert "Catalogue:" in page
    admin.post("/catalogue/gpt/")
    cells = {(cell.side, cell.name): cell for cell in Service.objects.get(service_id="gpt").capabilities.all()}
    assert cells["input", "vision"].supported
    assert {cell.source for cell in cells.values()} == {"catalogue"}
    assert "This page says the same." in text_of(admin.get("/services/gpt/"))


def test_the_page_saves_only_the_switches_that_changed(admin: Client) -> None:
    """Without scripts the page saves all its switches in one revision; those that stayed keep where they came from."""
    before = Revision.objects.count()
    kept = ["input:text", "output:text", "output:structured_output", "input:audio"]
    answer = admin.post("/capabilities/vision-model/", {"cell": kept, "custom": "smell", "side": "input"})
    row = Service.objects.get(service_id="vision-model")
    on = {(cell.side, cell.name) for cell in row.capabilities.all() if cell.supported}
    assert ("input", "vision") not in on
    assert {("input", "audio"), ("input", "smell"), ("output", "structured_output")} <= on
    assert Revision.objects.count() == before + 1
    admin.post(f"/undo/{undo_in(admin, answer)}/", {"next": "/services/"})
    assert Service.objects.get(service_id="vision-model").capabilities.get(name="vision").supported


def test_limits_are_shown_with_source_and_date_and_may_be_overridden(admin: Client) -> None:
    """The table shows the slots in effect; a limit written here is in it, marked as set here."""
    row = Service.objects.get(service_id="vision-model")
    assert "OpenAI: images and vision" in text_of(admin.get("/services/vision-model/"))
    answer = admin.post("/services/vision-model/", form_of(row, limits_json='{"image": {"maxBytes": 5242880}}'))
    assert answer.status_code == 302
    page = text_of(admin.get("/services/vision-model/"))
    assert "5.0 MB" in page
    assert "set here" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "This is not JSON"), ('{"image": {"maxBytes": "5"}}', "limits.image.maxBytes must be a whole number"),
     ('{"picture": {}}', "limits.picture is not known")],
)  # fmt: skip
def test_wrong_limits_are_told_with_their_path(admin: Client, text: str, said: str) -> None:
    """422, each problem at the field, nothing written."""
    row = Service.objects.get(service_id="vision-model")
    answer = admin.post("/services/vision-model/", form_of(row, limits_json=text))
    assert answer.status_code == 422
    assert said in text_of(answer)
    assert Service.objects.get(pk=row.pk).limits == {}


def test_the_content_policy_is_saved_as_the_core_reads_it(admin: Client) -> None:
    """Extract and convert together are one policy word; the default is no word at all."""
    row = Service.objects.get(service_id="vision-model")
    admin.post("/services/vision-model/", form_of(row, policy="convert+extract"))
    assert Service.objects.get(pk=row.pk).content == {"policy": "convert+extract"}
    admin.post("/services/vision-model/", form_of(Service.objects.get(pk=row.pk), policy=""))
    assert Service.objects.get(pk=row.pk).content == {}


def test_saving_what_somebody_else_changed_shows_both_versions(admin: Client) -> None:
    """409, theirs and mine side by side, nothing written."""
    row = Service.objects.get(service_id="vision-model")
    admin.post("/services/vision-model/", form_of(row, name="theirs"))
    answer = admin.post("/services/vision-model/", form_of(row, name="mine"))
    assert answer.status_code == 409
    assert "theirs" in text_of(answer)
    assert Service.objects.get(pk=row.pk).name == "theirs"


def test_a_service_that_an_agent_uses_cannot_be_deleted(admin: Client) -> None:
    """The reason stands beside the disabled button, and the action refuses too."""
    assert "Agents still use this service: vision-agent." in text_of(admin.get("/services/vision-model/"))
    admin.post("/delete/service/vision-model/")
    assert Service.objects.filter(service_id="vision-model").exists()
    admin.post("/delete/service/echo-503/")
    assert not Service.objects.filter(service_id="echo-503").exists()


def test_an_id_with_a_slash_has_a_page(admin: Client) -> None:
    """Service ids are data: `deepseek-ai/DeepSeek-V3` is one."""
    echo = Provider.objects.get(name="echo")
    new = {"service_id": "deepseek-ai/DeepSeek-V3", "name": "d", "provider": echo.pk, "model": "m"}
    answer = admin.post("/new/service/", new)
    assert admin.get(answer["Location"]).status_code == 200
    assert admin.post("/catalogue/deepseek-ai/DeepSeek-V3/").status_code == 302


def test_a_repeated_id_is_told_at_its_field(admin: Client) -> None:
    """422 with what was typed still there."""
    new = {
        "service_id": "vision-model",
        "name": "again",
        "provider": Provider.objects.get(name="echo").pk,
        "model": "m",
    }
    answer = admin.post("/new/service/", new)
    assert answer.status_code == 422
    assert "already exists" in text_of(answer)


def test_the_list_takes_the_same_queries_for_six_and_for_sixty_services(admin: Client) -> None:
    """The number of queries does not grow with the rows, and a search narrows the fragment."""
    few = queries_of(admin, "/services/")
    provider = Provider.objects.get(name="example")
    for number in range(54):
        Service.objects.create(service_id=f"s{number}", name="s", provider=provider, model="m")
    assert queries_of(admin, "/services/") == few
    assert "vision-model" not in text_of(admin.get("/services/?q=s5", headers=HTMX))


def test_a_viewer_reads_a_service_and_changes_nothing(admin: Client) -> None:
    """Every changing address answers 403."""
    viewer = client_of(staff=False)
    assert viewer.get("/services/vision-model/").status_code == 200
    for address in ("/services/", "/capabilities/", "/catalogue/", "/delete/service/"):
        assert viewer.post(f"{address}vision-model/").status_code == 403
