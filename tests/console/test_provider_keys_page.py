"""Several keys on a provider's page: adding, naming, enabling, disabling, removing and testing.

Keys are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.wire import Failure, Fault
from capabilities.models import KeyTest, Provider
from routing_admin.configuration import rows, snapshot
from routing_admin.core.configuration.specs import KeyKind
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import AttemptLog, AuditEvent, RequestLog, Revision
from routing_admin.upstream import process_upstream, run_sync
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import offered_undo, response_text
from tests.lab import Lab

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
FIRST, SECOND, THIRD = (f"sk-lab-{name}-0123456789abcdef" for name in ("first", "second", "third"))


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab
        run_sync(process_upstream().close())


@pytest.fixture
def pool(admin: Client, lab: Lab) -> Provider:
    Provider.objects.create(name="pool", endpoint=lab.url("openai", "pool"), default_model="lab", key_source="env")
    add_key(admin, name="", key=SECOND)
    save_first_key(admin, FIRST)
    add_key(admin, name="billing", key=THIRD)
    return Provider.objects.get(name="pool")


def save_first_key(admin: Client, key: str) -> None:
    row = Provider.objects.get(name="pool")
    form = {"endpoint": row.endpoint, "protocol": "openai", "default_model": "lab", "enabled": "on", "proxy": "default"}
    assert (
        admin.post("/providers/pool/", {**form, "key_act": "set", "key": key, "version": row.version}).status_code
        == 302
    )


def add_key(admin: Client, **fields: str) -> object:
    posted = {f"further-{name}": value for name, value in {"key_act": "set", "name": "", **fields}.items()}
    return admin.post("/providers/pool/keys/add/", posted)


def change_key(admin: Client, key: str, name: str, *, enabled: bool = True) -> object:
    posted = {"form": "key-9", "key-9-key": key, "key-9-name": name, **({"key-9-enabled": "on"} if enabled else {})}
    return admin.post("/providers/pool/keys/change/", posted)


def names_and_kinds() -> list[tuple[str, KeyKind, bool]]:
    spec = rows.read().provider("pool")
    return [(key.name, key.kind, key.enabled) for key in spec.keys]


def test_provider_key_changes_are_audited_and_undo_restores_a_removed_key(admin, pool):
    """Undo does not need the plain text of a key."""
    stored = KeyKind.STORED
    assert names_and_kinds() == [("1", stored, True), ("2", stored, True), ("billing", stored, True)]
    change_key(admin, "2", "team")
    change_key(admin, "1", "main", enabled=False)
    assert names_and_kinds() == [("main", stored, False), ("team", stored, True), ("billing", stored, True)]
    before = snapshot.build().provider_keys["pool"].every
    page = admin.post("/providers/pool/keys/remove/", {"key": "main"}, follow=True)
    assert names_and_kinds() == [("team", stored, True), ("billing", stored, True)], "the next one becomes the first"
    admin.post(f"/undo/{offered_undo(admin, page)}/")
    assert snapshot.build().provider_keys["pool"].every == before
    assert [key.state.value for key in before] == [FIRST, SECOND, THIRD]
    acts = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"provider.key_add", "provider.key_change", "provider.key_remove"} <= acts
    assert Page(admin.get("/history/")).shows("Provider key deleted")


def test_provider_key_appears_on_no_page_and_in_no_history_or_export(admin, pool):
    change_key(admin, "2", "team")
    stored = json.dumps(
        [list(Revision.objects.values("snapshot", "changes")), list(AuditEvent.objects.values("details"))]
    )
    pages = "".join(
        response_text(admin.get(path))
        for path in (
            "/providers/pool/",
            "/providers/",
            "/history/",
            "/config/",
            f"/history/{Revision.objects.first().number}/",
        )
    )
    exports = b"".join(admin.get(f"/config/export/{name}/").getvalue() for name in ("llm-routing", "llmservices"))
    for key in (FIRST, SECOND, THIRD):
        assert key not in stored + pages + exports.decode()
    assert "…cdef" in pages


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "billing", "key": "sk-lab-another-0123456789"}, "This provider already has a key named billing."),
        ({"key": THIRD}, "This key already exists as billing."),
        ({"key": ""}, "Enter the key, or choose another way."),
        ({"key": "xxx"}, "This is not a key"),
        ({"key_act": "env", "key_variable": "HOME"}, "Only variables named LLM_PROVIDER_…_API_KEY"),
    ],
)
def test_invalid_provider_key_shows_the_reason_and_the_form(admin, pool, fields, sentence):
    before = Revision.objects.count()
    page = add_key(admin, **fields)
    assert page.status_code == 422
    dialog = Page(page).region("Add another key")
    assert "open" in dialog.attributes
    assert sentence in dialog.alert
    assert fields.get("key") in (None, "", "xxx") or fields["key"] not in page.content.decode()
    assert Revision.objects.count() == before


def test_environment_key_variable_is_numbered_after_the_stored_keys(admin, pool):
    """Stored keys get the first numbers, because an export names an environment variable for each of them."""
    add_key(admin, key_act="env", name="from outside")
    assert rows.read().provider("pool").keys[-1].variable == "LLM_PROVIDER_POOL_API_KEY_4"


def test_stored_keys_are_not_sent_to_a_changed_origin(admin, pool):
    row = Provider.objects.get(name="pool")
    form = {"endpoint": "https://api.openai.com/v1", "protocol": "openai", "default_model": "lab", "enabled": "on"}
    admin.post("/providers/pool/", {**form, "proxy": "default", "key_act": "keep", "version": row.version})
    assert {kind for _name, kind, _on in names_and_kinds()} == {KeyKind.ENV}
    assert not snapshot.build().keys["pool"].usable


def test_each_provider_key_is_tested_and_shows_the_result(admin, pool, lab):
    lab.play({f"pool/{SECOND}": 401})
    results = Page(admin.post("/providers/pool/keys/test/", headers=HTMX)).region("Keys").status
    assert results.startswith("Key 2 401 ")
    assert results.endswith("The key was refused. Store a valid one.")
    faults = dict(KeyTest.objects.filter(provider="pool").values_list("key", "fault"))
    assert faults == {"1": "", "2": "http_401", "billing": ""}
    lab.play({})
    page = Page(admin.post("/providers/pool/keys/test/", {"key": "2"}, headers=HTMX))
    assert page.region("Keys").status == "All tested keys work."
    assert len(lab.requests) == 1


def test_key_cooldown_shows_the_end_time_and_ends_after_a_successful_test(admin, pool, lab):
    """Each process keeps its own cooldown for each key."""
    keys = {key.name: PoolKey(key.name, key.mark) for key in snapshot.current().provider_keys["pool"].every}
    process_run_context().pools.record("pool", keys["billing"], Failure(Fault.HTTP_401, "no", 401))
    table = Page(admin.get("/providers/pool/")).region("Keys")
    states = {
        name: [label for label in ("Ready", "Key rejected") if table.row(name).shows(label)] for name in table.rows
    }
    assert states == {"1": ["Ready"], "2": ["Ready"], "billing": ["Key rejected"]}
    assert table.row("billing").shows("after http_401, then retried automatically")
    dashboard = Page(admin.get("/"))
    assert dashboard.link("pool")
    assert dashboard.shows("refuses its key billing")
    admin.post("/providers/pool/keys/test/", headers=HTMX)
    assert not Page(admin.get("/providers/pool/")).shows("retried automatically")


def test_last_use_and_last_rejection_of_a_key_are_read_from_the_log(admin, pool):
    """Attempts logged without a key's name count for the first key, which was the provider's only key at that time."""
    request = RequestLog.objects.create(id="r1", started_at=timezone.now(), outcome="ok", status=200)
    tries = [{"outcome": "http_429", "key": "2"}, {"outcome": "ok", "key": "billing"}]
    columns = {"request": request, "provider": "pool", "at": timezone.now(), "outcome": "ok"}
    AttemptLog.objects.create(position=0, tries=tries, **columns)
    table = Page(admin.get("/providers/pool/")).region("Keys")
    assert {name: table.row(name).text.count("just now") for name in table.rows} == {"1": 0, "2": 2, "billing": 1}
    assert [name for name in table.rows if table.row(name).shows("http_429")] == ["2"]


def test_request_page_shows_the_keys_tried(admin, pool):
    request = RequestLog.objects.create(id="r1", started_at=timezone.now(), outcome="ok", status=200, task_type="t")
    tries = [
        {"outcome": "http_401", "status": 401, "key": "2", "startedMs": 0, "durationMs": 9},
        {"outcome": "ok", "status": None, "key": "billing", "startedMs": 9, "durationMs": 9},
    ]
    columns = {"provider": "pool", "model": "lab", "at": timezone.now(), "position": 0, "duration_ms": 18}
    AttemptLog.objects.create(request=request, outcome="ok", status=200, tries=tries, **columns)
    page = Page(admin.get("/requests/r1/"))
    for expected in ("lab answered with another key after 2 failed.", "lab · billing"):
        assert page.shows(expected)
    for expected in ("2 401", "billing ok"):
        assert page.row("lab").shows(expected)
    failed = RequestLog.objects.create(id="r2", started_at=timezone.now(), outcome="upstream_auth", status=502)
    AttemptLog.objects.create(request=failed, outcome="http_401", status=401, tries=tries[:1], **columns)
    page = Page(admin.get("/requests/r2/"))
    assert page.shows("pool rejects the keys it was called with (2). Store valid ones.")


def test_viewer_sees_key_states_but_cannot_change_keys(viewer, pool):
    page = Page(viewer.get("/providers/pool/"))
    assert page.region("Keys").rows == ["1", "2", "billing"]
    assert not page.form("/providers/pool/keys/test/")
    assert viewer.post("/providers/pool/keys/remove/", {"key": "2"}).status_code == 403
