"""A change to the configuration is one transaction that writes one revision and one audit event."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError
from django.utils.translation import override

from capabilities.acts import Actor, AuditedAction
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


def test_a_change_makes_one_revision_and_one_audit_event() -> None:
    """A change is recorded as a revision with actor and difference, and as an audit event that refers to it."""
    create_provider()
    revision = Revision.objects.get()
    assert (revision.actor, revision.changes[0]["kind"], revision.changes[0]["name"]) == ("ada", "provider", "deepseek")
    event = AuditEvent.objects.get()
    assert (event.action, event.object_name, event.revision) == ("provider.add", "deepseek", revision.number)


def test_a_change_that_changes_nothing_makes_no_revision() -> None:
    """An action that changes nothing is audited but creates no revision."""
    provider = create_provider()
    save_provider(ADA, provider)
    assert (Revision.objects.count(), AuditEvent.objects.count()) == (1, 2)


def test_changes_inside_a_change_join_its_revision(demo: None) -> None:
    """A change that consists of several actions, such as loading the demo, is one revision."""
    assert Revision.objects.count() == 1
    assert AuditEvent.objects.filter(action="configuration.import", revision=Revision.objects.get().number).exists()


def test_an_action_inside_a_change_has_the_revision_of_the_outermost_one(demo: None) -> None:
    """A nested action gets the revision of the outermost change, or None if nothing changed."""
    with ledger.change(ADA, AuditedAction("test")) as outer:
        inner = save_alias(ADA, "gpt-4o", "task:default")
        assert inner.revision is None
    assert inner.revision == outer.revision == Revision.objects.latest("number").number
    assert save_alias(ADA, "gpt-4o", "task:default").revision is None


def test_an_invalid_configuration_is_rolled_back_whole(demo: None) -> None:
    """A change that results in an invalid configuration is rolled back."""
    before = rows.read()
    with pytest.raises(InvalidError) as refused, ledger.change(ADA, AuditedAction("test")):
        TaskRoute.objects.create(task_type="hollow", position=99)
    assert "hollow" in str(refused.value)
    assert rows.read() == before
    assert Revision.objects.count() == 1


def test_second_creation_of_the_same_name_is_refused(demo: None) -> None:
    """If two users create an object with the same name, the second gets an error message, not a database error."""
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


def test_a_stale_version_is_refused_and_changes_nothing() -> None:
    """If two users edit the same version, the second gets a conflict."""
    provider = create_provider()
    version = provider.version
    save_provider(ADA, provider, expected=version)
    stale = Provider.objects.get()
    stale.default_model = "other"
    with pytest.raises(ConflictError):
        save_provider(ADA, stale, expected=version)
    assert Provider.objects.get().default_model == "deepseek-chat"


def test_undo_takes_the_newest_revision_back_and_can_itself_be_undone(demo: None) -> None:
    """Undo restores the state before a change. Undoing the undo restores the state after the change."""
    before = rows.read()
    create_provider()
    after = rows.read()
    undone = undo(ADA, Revision.objects.first().number)
    assert rows.read() == before
    undo(ADA, undone.revision)
    assert rows.read() == after


def test_undo_of_an_older_revision_is_refused(demo: None) -> None:
    """Only the newest revision can be undone, since undo must not discard a later change."""
    first = Revision.objects.first().number
    create_provider()
    with pytest.raises(ConflictError):
        undo(ADA, first)


def test_the_whole_demo_is_removed_and_brought_back_by_undo(demo: None) -> None:
    """Removing the demo is a single change that can be undone."""
    before = rows.read()
    removal = load.remove(ADA)
    assert rows.read() == EMPTY
    undo(ADA, removal.revision)
    assert rows.read() == before


def test_a_restored_provider_has_its_key() -> None:
    """Undo restores the stored key as well, although the revision contains only its fingerprint."""
    provider = create_provider()
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-very-secret-0123456789"))
    delete_provider(ADA, provider)
    undo(ADA, Revision.objects.first().number)
    assert snapshot.current().keys["deepseek"].value == "sk-very-secret-0123456789"
    assert "very-secret" not in str(list(Revision.objects.values())) + str(list(AuditEvent.objects.values()))


def test_a_stored_key_does_not_follow_its_provider_to_another_origin() -> None:
    """A stored key is valid for one origin. If the origin changes, the key has to be entered again."""
    provider = create_provider()
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-very-secret-0123456789"))
    provider.endpoint = "https://elsewhere.example.org"
    save_provider(ADA, provider)
    assert not snapshot.current().keys["deepseek"].usable
    assert StoredKey.objects.get().ciphertext.find("sk-very") == -1


def test_a_variable_outside_the_allowed_names_is_no_key() -> None:
    """A `${…}` reference can only name a variable for provider keys (decision 10)."""
    with pytest.raises(InvalidError):
        save_provider(
            ADA, Provider(name="x", endpoint="https://x.example"), key=KeyChange(KeyAct.SET, "${DATABASE_URL}")
        )
    assert not Provider.objects.exists()


@pytest.mark.requirement("MMR-E1")
def test_the_environment_overrides_a_stored_key() -> None:
    """`LLM_PROVIDER_{NAME}_API_KEY` overrides the stored key, unless the variable is empty."""
    provider = create_provider("Deep Seek")
    save_provider(ADA, provider, key=KeyChange(KeyAct.SET, "sk-stored-0123456789"))
    os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"] = "sk-from-environment"
    try:
        assert snapshot.build().keys["Deep Seek"].value == "sk-from-environment"
        os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"] = ""
        assert snapshot.build().keys["Deep Seek"].value == "sk-stored-0123456789"
    finally:
        del os.environ["LLM_PROVIDER_DEEP_SEEK_API_KEY"]


def test_a_provider_in_use_is_not_deleted_and_the_sentence_names_its_users(demo: None) -> None:
    """A provider in use cannot be deleted. The error names what uses it, and the database protects the row as well."""
    echo = Provider.objects.get(name="echo")
    with pytest.raises(InUseError, match="design"):
        delete_provider(ADA, echo)
    with pytest.raises(ProtectedError):
        echo.delete()


def test_the_database_keeps_chains_free_of_gaps(demo: None) -> None:
    """Even a DELETE in SQL leaves no gap in the positions of a chain."""
    route = TaskRoute.objects.get(task_type="design")
    with pytest.raises(IntegrityError), transaction.atomic():
        Candidate.objects.create(route=route, position=9, provider=Provider.objects.get(name="echo"))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM routing_admin_candidate WHERE route_id = %s AND position = 1", [route.pk])
    assert list(route.candidates.values_list("position", flat=True)) == [1, 2]


def test_a_chain_is_reordered_as_one_revision(demo: None) -> None:
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


def test_the_default_route_has_to_stay(demo: None) -> None:
    """The default route cannot be deleted while there are other routes."""
    with pytest.raises(InUseError):
        delete_route(ADA, TaskRoute.objects.get(task_type="default"))


def test_rows_give_back_the_value_they_were_written_from() -> None:
    """Writing a configuration to rows and reading it again gives the same value."""
    files = [(EXAMPLES / name).read_bytes() for name in ("llm-routing.json", "llmservices.json")]
    preview = preview_import(files)
    import_configuration(ADA, files)
    assert rows.read() == preview.imported.configuration


def test_a_configuration_of_thousands_can_be_read(demo: None) -> None:
    """A configuration can be read even if it has more providers than SQLite allows parameters in a query."""
    numbers = range(1500)
    providers = [Provider(name=f"p{n}", endpoint="https://p.example/v1", default_model="m") for n in numbers]
    Provider.objects.bulk_create(providers)
    routes = TaskRoute.objects.bulk_create([TaskRoute(task_type=f"task-{n}") for n in numbers])
    chains = zip(routes, providers, strict=True)
    Candidate.objects.bulk_create([Candidate(route=route, provider=provider, position=1) for route, provider in chains])
    configuration = rows.read()
    assert configuration.route("task-1499").candidates == (CandidateSpec("p1499"),)


def test_an_agent_uses_a_service_or_a_route_that_is_there(demo: None) -> None:
    """An agent may name a service or a route but not both, and it must exist."""
    service = Service.objects.get(service_id="echo-text")
    with pytest.raises(InvalidError):
        save_agent(ADA, Agent(agent_id="both", service=service, task_type="design"))
    with pytest.raises(InvalidError):
        save_agent(ADA, Agent(agent_id="lost", task_type="nowhere"))
    save_agent(ADA, Agent(agent_id="designer", task_type="design"))
    assert snapshot.current().directory.get("designer").service_id == "echo-503"


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_eight_writers_wait_for_one_another_and_none_is_lost() -> None:
    """SQLite writers queue (transaction mode IMMEDIATE), and each change gets its own revision."""

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


def test_descriptions_name_the_agents_that_can_really_read_a_file(demo: None) -> None:
    """Only agents that can receive the file are suggested: by capability, media type and limits."""
    picture = FilePart(Kind.IMAGE, "image/png", "plan.png", 2048, content=None)
    sound = FilePart(Kind.AUDIO, "audio/mpeg", "note.mp3", 2048)
    file = FilePart(Kind.IMAGE, "image/x-unheard-of", "plan.odd", 2048)
    assert list_readers(snapshot.current(), picture) == ["multimodal-agent", "vision-agent"]
    assert list_readers(snapshot.current(), sound) == ["multimodal-agent"]
    assert list_readers(snapshot.current(), file) == []
    assert list_readers(snapshot.current(), picture, but="vision-agent") == ["multimodal-agent"]


def test_removing_the_demo_leaves_added_entries_and_what_they_use(demo: None) -> None:
    """Removing the demo keeps what a user added, and the providers and the default route that this needs."""
    mine = TaskRoute(task_type="mine")
    save_route(ADA, mine, [CandidateSpec("echo", "echo-text")])
    load.remove(ADA)
    remaining = rows.read()
    assert [route.task_type for route in remaining.routes] == ["default", "mine"]
    assert [provider.name for provider in remaining.providers] == ["echo"]
    assert (remaining.agents, remaining.services) == ((), ())


def test_a_dry_run_refuses_what_applying_would_refuse() -> None:
    """A preview rejects what the import would reject, such as a slash in a provider's name."""
    files = [
        b'{"providers": [{"providerName": "a/b", "apiKey": "", "endpoint": "https://x.example/v1",'
        b' "defaultModel": "m"}],'
        b' "routing": {"default": {"provider": "a/b"}}}'
    ]
    preview = preview_import(files)
    assert not preview.imported.accepted
    with pytest.raises(InvalidError):
        import_configuration(ADA, files)
