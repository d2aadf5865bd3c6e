"""Parameters that a model rejects are stored, and all processes leave them out until the model or the URL changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from django.db import DatabaseError

from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.memory import RefusalMemory
from routing_admin.dispatch import stored_refusals
from routing_admin.dispatch.stored_refusals import READ_SECONDS, StoredRefusals
from routing_admin.models import LearnedRefusal
from tests.fallback.scripted_runs import Clock

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

MODEL_KEY = ("picky", "gpt-5")


@dataclass
class Process:
    """A simulated process with its own memory. The test triggers its periodic synchronization."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.memory = RefusalMemory(self.clock)
        self.kept = StoredRefusals(lambda: self.memory, self.clock)
        self.kept.begin()

    def synchronise(self) -> Process:
        self.clock.sleep(READ_SECONDS)
        self.kept.look()
        return self

    @property
    def known(self) -> dict[str, str | None]:
        return dict(self.memory.lasting(*MODEL_KEY))


@pytest.fixture(autouse=True)
def service() -> Service:
    provider = Provider.objects.create(name="picky", endpoint="https://one.test/v1", default_model="other")
    row = Service.objects.create(service_id="gpt", name="gpt", provider=provider, model="gpt-5")
    snapshot.refresh()
    return row


def learn(*params: str) -> Process:
    process = Process().synchronise()
    for param in params:
        process.memory.refuse(*MODEL_KEY, param)
    process.memory.refuse(*MODEL_KEY, "max_tokens", "max_completion_tokens")
    return process.synchronise()


LEARNED = {"temperature": None, "top_p": None, "max_tokens": "max_completion_tokens"}


def test_rejected_parameters_survive_a_restart() -> None:
    learn("temperature", "top_p")
    assert Process().synchronise().known == LEARNED


def test_rejected_parameter_before_the_first_sync_is_stored() -> None:
    process = Process()
    process.memory.refuse(*MODEL_KEY, "seed")
    process.synchronise()
    assert Process().synchronise().known == {"seed": None}


def test_processes_merge_their_rejected_parameters() -> None:
    """Neither process overwrites the rejected parameters that the other stored."""
    first, second = Process().synchronise(), Process().synchronise()
    first.memory.refuse(*MODEL_KEY, "temperature")
    second.memory.refuse(*MODEL_KEY, "seed")
    first.synchronise(), second.synchronise(), first.synchronise()
    assert first.known == second.known == {"temperature": None, "seed": None}


def test_removed_parameter_refusal_is_removed_in_all_processes() -> None:
    first = learn("temperature", "top_p")
    second = Process().synchronise()
    second.memory.forget(*MODEL_KEY, "temperature")
    second.synchronise(), first.synchronise()
    assert (
        first.known
        == second.known
        == Process().synchronise().known
        == {k: v for k, v in LEARNED.items() if k != "temperature"}
    )


def change_address(row: Service) -> None:
    Provider.objects.filter(pk=row.provider.pk).update(endpoint="https://two.test/v1")


def change_protocol(row: Service) -> None:
    Provider.objects.filter(pk=row.provider.pk).update(protocol="anthropic")


def change_model(row: Service) -> None:
    Service.objects.filter(pk=row.pk).update(model="gpt-6")


def delete(row: Service) -> None:
    row.delete()


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("change", [change_address, change_protocol, change_model, delete])
def test_parameter_refusals_are_deleted_when_model_or_url_changes(
    service: Service, change: Callable[[Service], None], is_running: bool
) -> None:
    """Running and new processes forget refused parameters and values, and their rows are deleted."""
    process = learn("temperature")
    process.memory.refuse(*MODEL_KEY, "reasoning_effort", value_only=True)
    change(service)
    snapshot.refresh()
    if not is_running:
        process = Process()
    process.synchronise()
    assert process.memory.refusals(*MODEL_KEY) == ()
    assert not LearnedRefusal.objects.exists()


def test_other_configuration_changes_keep_parameter_refusals(service: Service) -> None:
    process = learn("temperature", "top_p")
    Service.objects.filter(pk=service.pk).update(name="renamed")
    snapshot.refresh()
    assert process.synchronise().known == Process().synchronise().known == LEARNED


def test_refusals_of_values_or_by_unconfigured_models_are_kept_only_in_memory() -> None:
    """The model may accept another value, and callers can invent any number of model names."""
    process = Process().synchronise()
    process.memory.refuse(*MODEL_KEY, "reasoning_effort", value_only=True)
    process.memory.refuse("picky", "made-up", "seed")
    process.synchronise()
    assert not LearnedRefusal.objects.exists()
    assert process.memory.lasting("picky", "made-up") == {"seed": None}
    assert len(process.memory.refusals(*MODEL_KEY)) == 1


def test_parameter_refusal_is_stored_after_a_database_error(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process().synchronise()
    process.memory.refuse(*MODEL_KEY, "seed")

    def refuse(*_: object) -> None:
        raise DatabaseError

    with monkeypatch.context() as broken:
        broken.setattr(stored_refusals, "write_refusals", refuse)
        with pytest.raises(DatabaseError):
            process.synchronise()
    assert process.synchronise().known == Process().synchronise().known == {"seed": None}


def test_refusal_sync_without_changes_makes_no_queries(django_assert_num_queries: Callable[..., object]) -> None:
    process = learn("temperature")
    with django_assert_num_queries(0), django_assert_num_queries(0, using="logs"):  # type: ignore[attr-defined]
        process.kept.look()
