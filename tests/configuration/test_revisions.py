"""A configuration change is one transaction that writes one revision and one audit event."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError
from django.utils.translation import override

from capabilities.actors import Actor, AuditedAction
from capabilities.core.message import FilePart
from capabilities.core.vocabulary import Kind
from capabilities.errors import ConflictError, InUseError, InvalidError, TakenError
from capabilities.models import Agent, Provider, Service, StoredKey
from routing_admin.configuration import rows, snapshot
from routing_admin.configuration.agents.actions import save_agent
from routing_admin.configuration.revisions import ledger
from routing_admin.console.demo import load
from routing_admin.console.exchange.actions import import_configuration, preview_import
from routing_admin.console.history.actions import undo
from routing_admin.console.providers.actions import KeyAct, KeyChange, delete_provider, save_provider
from routing_admin.console.routes.actions import delete_route, save_alias, save_route
from routing_admin.core.configuration.specs import EMPTY, CandidateSpec
from routing_admin.dispatch.model_endpoints import list_readers
from routing_admin.models import AuditEvent, Candidate, Revision, TaskRoute

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
EXAMPLES = Path(__file__).parent / "examples"


def create_provider(name: str = "deepseek", **fields: object) -> Provider:
    values = {"endpoint": "https://api.deepseek.com", "default_model": "deepseek-chat", **fields}
    row = Provider(name=name, **values)
    save_provider(ADA, row)
    return row


def test_change_creates_one_revision_and_one_audit_event() -> None:
    create_provider()
    revision = Revision.objects.get()
    assert (revision.actor, revision.changes[0]["kind"], revision.changes[0]["name"]) == ("ada", "provider", "deepseek")
    event = AuditEvent.objects.get()
    assert (event.action, event.object_name, event.revision) == ("provider.add", "deepseek", revision.number)


def test_action_without_a_change_is_audited_and_creates_no_revision() -> None:
    provider = create_provider()
    save_provider(ADA, provider)
    assert (Revision.objects.count(), AuditEvent.objects.count()) == (1, 2)


def test_nested_changes_share_one_revision(demo: None) -> None:
    assert Revision.objects.count() == 1
    assert AuditEvent.objects.filter(action="configuration.import", revision=Revision.objects.get().number).exists()


def test_nested_action_has_the_revision_of_the_outermost_change(demo: None) -> None:
    with ledger.change(ADA, AuditedAction("test")) as outer:
        inner = save_alias(ADA, "gpt-4o", "task:default")
        assert inner.revision is None
    assert inner.revision == outer.revision == Revision.objects.latest("number").number
    assert save_alias(ADA, "gpt-4o", "task:default").revision is None


def test_invalid_configuration_is_rolled_back(demo: None) -> None:
    before = rows.read()
    with pytest.raises(InvalidError) as refused, ledger.change(ADA, AuditedAction("test")):
        TaskRoute.objects.create(task_type="hollow", position=99)
    assert "hollow" in str(refused.value)
    assert rows.read() == before
    assert Revision.objects.count() == 1


def test_creation_of_an_existing_name_is_rejected(demo: None) -> None:
    """The user who creates the name second gets a clear message instead of a database error."""
    first, second = (TaskRoute(task_type="drafts") for _ in range(2))
    save_route(ADA, first, [CandidateSpec("echo")])
    with override("en"):
        with pytest.raises(TakenError, match="just added drafts"):
            save_route(ADA, second, [CandidateSpec("echo")])
        with pytest.raises(TakenError, match="just added echo"):
            create_provider("echo")
        with pytest.raises(TakenError, match="just added text-agent"):
            save_agent(ADA, Agent(agent_id="text-agent", name="x"))
    assert Revision.objects.count() == 2


def test_change_of_an_outdated_version_is_a_conflict() -> None:
    provider = create_provider()
    version = provider.version
    save_provider(ADA, provider, expected=version)
    stale = Provider.objects.get()
    stale.default_model = "other"
    with pytest.raises(ConflictError):
        save_provider(ADA, stale, expected=version)
    assert Provider.objects.get().default_model == "deepseek-chat"


def test_undo_restores_the_previous_state_and_can_itself_be_undone(demo: None) -> None:
    before = rows.read()
    create_provider()
    after = rows.read()
    undone = undo(ADA, Revision.objects.first().number)
    assert rows.read() == before
    undo(ADA, undone.revision)
    assert rows.read() == after


def test_undo_of_an_older_revision_is_rejected(demo: None) -> None:
    """Undoing an older revision would discard a later change."""
    first = Revision.objects.first().number
    create_provider()
    with pytest.raises(ConflictError):
        undo(ADA, first)


def test_removal_of_the_demo_can_be_undone(demo: None) -> None:
    before = rows.read()
    removal = load.remove(ADA)
    assert rows.read() == EMPTY
    undo(ADA, removal.revision)
    assert rows.read() == before


def test_undo_restores_the_stored_key() -> None:
    """A revision contains only the fingerprint of a stored key."""
    provider = create_provider()
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-very-secret-0123456789"))
    delete_provider(ADA, provider)
    undo(ADA, Revision.objects.first().number)
    assert snapshot.current().keys["deepseek"].value == "sk-very-secret-0123456789"
    assert "very-secret" not in str(list(Revision.objects.values())) + str(list(AuditEvent.objects.values()))


def test_stored_key_is_unusable_for_another_origin() -> None:
    provider = create_provider()
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-very-secret-0123456789"))
    provider.endpoint = "https://elsewhere.example.org"
    save_provider(ADA, provider)
    assert not snapshot.current().keys["deepseek"].usable
    assert StoredKey.objects.get().ciphertext.find("sk-very") == -1


def test_reference_to_a_variable_without_key_prefix_is_rejected_as_a_key() -> None:
    with pytest.raises(InvalidError):
        save_provider(
            ADA, Provider(name="x", endpoint="https://x.example"), key=KeyChange(KeyAct.SET, "${DATABASE_URL}")
        )
    assert not Provider.objects.exists()


@pytest.mark.requirement("MMR-E1")
def test_nonempty_environment_variable_overrides_the_stored_key() -> None:
    provider = create_provider("Deep Seek")
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-stored-0123456789"))
    os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"] = "sk-from-environment"
    try:
        assert snapshot.build().keys["Deep Seek"].value == "sk-from-environment"
        os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"] = ""
        assert snapshot.build().keys["Deep Seek"].value == "sk-stored-0123456789"
    finally:
        del os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"]


def test_deletion_of_a_provider_in_use_is_rejected_with_its_uses(demo: None) -> None:
    echo = Provider.objects.get(name="echo")
    with pytest.raises(InUseError, match="design"):
        delete_provider(ADA, echo)
    with pytest.raises(ProtectedError):
        echo.delete()


def test_database_closes_gaps_in_candidate_positions(demo: None) -> None:
    route = TaskRoute.objects.get(task_type="design")
    with pytest.raises(IntegrityError), transaction.atomic():
        Candidate.objects.create(route=route, position=9, provider=Provider.objects.get(name="echo"))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM routing_admin_candidate WHERE route_id = %s AND position = 1", [route.pk])
    assert list(route.candidates.values_list("position", flat=True)) == [1, 2]


def test_reordered_chain_is_one_revision(demo: None) -> None:
    route = TaskRoute.objects.get(task_type="design")
    chain = [
        CandidateSpec("echo", "echo-vision"),
        CandidateSpec("echo", "echo-503"),
        CandidateSpec("echo", "echo-text"),
    ]
    save_route(ADA, route, chain, expected=route.version)
    assert [str(candidate) for candidate in route.candidates.all()] == [
        "echo/echo-vision",
        "echo/echo-503",
        "echo/echo-text",
    ]
    assert Revision.objects.count() == 2


def test_default_route_cannot_be_deleted_before_the_others(demo: None) -> None:
    with pytest.raises(InUseError):
        delete_route(ADA, TaskRoute.objects.get(task_type="default"))


def test_database_rows_read_back_the_written_configuration() -> None:
    files = [(EXAMPLES / name).read_bytes() for name in ("llm-routing.json", "llmservices.json")]
    preview = preview_import(files)
    import_configuration(ADA, files)
    assert rows.read() == preview.imported.configuration


def test_configuration_with_thousands_of_providers_can_be_read(demo: None) -> None:
    """SQLite limits the number of parameters in a query."""
    numbers = range(1500)
    providers = [Provider(name=f"p{n}", endpoint="https://p.example/v1", default_model="m") for n in numbers]
    Provider.objects.bulk_create(providers)
    routes = TaskRoute.objects.bulk_create([TaskRoute(task_type=f"task-{n}") for n in numbers])
    chains = zip(routes, providers, strict=True)
    Candidate.objects.bulk_create([Candidate(route=route, provider=provider, position=1) for route, provider in chains])
    configuration = rows.read()
    assert configuration.route("task-1499").candidates == (CandidateSpec("p1499"),)


def test_agent_must_reference_an_existing_service_or_route_but_not_both(demo: None) -> None:
    service = Service.objects.get(service_id="echo-text")
    with pytest.raises(InvalidError):
        save_agent(ADA, Agent(agent_id="both", service=service, task_type="design"))
    with pytest.raises(InvalidError):
        save_agent(ADA, Agent(agent_id="lost", task_type="nowhere"))
    save_agent(ADA, Agent(agent_id="designer", task_type="design"))
    assert snapshot.current().directory.get("designer").service_id == "echo-503"


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_eight_concurrent_writers_each_get_a_revision() -> None:
    """SQLite writers wait for each other, because transactions begin in IMMEDIATE mode."""

    def write(number: int) -> None:
        try:
            create_provider(f"provider-{number}")
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (Provider.objects.count(), Revision.objects.count()) == (8, 8)


def test_descriptions_suggest_only_agents_that_can_read_the_file(demo: None) -> None:
    picture = FilePart(Kind.IMAGE, "image/png", "plan.png", 2048, content=None)
    sound = FilePart(Kind.AUDIO, "audio/mpeg", "note.mp3", 2048)
    file = FilePart(Kind.IMAGE, "image/x-unheard-of", "plan.odd", 2048)
    assert list_readers(snapshot.current(), picture) == ["multimodal-agent", "vision-agent"]
    assert list_readers(snapshot.current(), sound) == ["multimodal-agent"]
    assert list_readers(snapshot.current(), file) == []
    assert list_readers(snapshot.current(), picture, but="vision-agent") == ["multimodal-agent"]


def test_removing_the_demo_keeps_added_entries_and_their_dependencies(demo: None) -> None:
    mine = TaskRoute(task_type="mine")
    save_route(ADA, mine, [CandidateSpec("echo", "echo-text")])
    load.remove(ADA)
    remaining = rows.read()
    assert [route.task_type for route in remaining.routes] == ["default", "mine"]
    assert [provider.name for provider in remaining.providers] == ["echo"]
    assert (remaining.agents, remaining.services) == ((), ())


def test_dry_run_rejects_the_same_files_as_the_import() -> None:
    files = [
        b'{"providers": [{"providerName": "a/b", "apiKey": "", "endpoint": "https://x.example/v1",'
        b' "defaultModel": "m"}],'
        b' "routing": {"default": {"provider": "a/b"}}}'
    ]
    preview = preview_import(files)
    assert not preview.imported.accepted
    with pytest.raises(InvalidError):
        import_configuration(ADA, files)
