"""Parameters that models refuse are stored: restarts and other processes know them until model or address changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from django.db import DatabaseError

from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.memory import Memory
from routing_admin.dispatch import kept_refusals
from routing_admin.dispatch.kept_refusals import READ_SECONDS, KeptRefusals
from routing_admin.models import LearnedRefusal
from tests.fallback.scripted_runs import Clock

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

PLACE = ("picky", "gpt-5")


@dataclass
class Process:
    """One process with its own memory; the test triggers its periodic sync."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.memory = Memory(self.clock)
        self.kept = KeptRefusals(lambda: self.memory, self.clock)
        self.kept.begin()

    def look(self) -> Process:
        """Run one sync, at a time when the rows are due to be read again."""
        self.clock.sleep(READ_SECONDS)
        self.kept.look()
        return self

    @property
    def known(self) -> dict[str, str | None]:
        return dict(self.memory.lasting(*PLACE))


@pytest.fixture(autouse=True)
def service() -> Service:
    provider = Provider.objects.create(name="picky", endpoint="https://one.test/v1", default_model="other")
    row = Service.objects.create(service_id="gpt", name="gpt", provider=provider, model="gpt-5")
    snapshot.refresh()
    return row


def learn(*params: str) -> Process:
    process = Process().look()
    for each in params:
        process.memory.refuse(*PLACE, each)
    process.memory.refuse(*PLACE, "max_tokens", "max_completion_tokens")
    return process.look()


LEARNED = {"temperature": None, "top_p": None, "max_tokens": "max_completion_tokens"}


def test_a_restart_knows_what_a_model_refuses() -> None:
    """Both refused parameters and the other name of the token limit are stored."""
    learn("temperature", "top_p")
    assert Process().look().known == LEARNED


def test_what_is_learned_before_the_first_round_is_kept() -> None:
    process = Process()
    process.memory.refuse(*PLACE, "seed")
    process.look()
    assert Process().look().known == {"seed": None}


def test_another_process_knows_it_and_adds_to_it() -> None:
    """Neither process overwrites what the other learned."""
    one, two = Process().look(), Process().look()
    one.memory.refuse(*PLACE, "temperature")
    two.memory.refuse(*PLACE, "seed")
    one.look(), two.look(), one.look()
    assert one.known == two.known == {"temperature": None, "seed": None}


def test_what_one_process_forgets_the_others_forget() -> None:
    one = learn("temperature", "top_p")
    two = Process().look()
    two.memory.forget(*PLACE, "temperature")
    two.look(), one.look()
    assert one.known == two.known == Process().look().known == {k: v for k, v in LEARNED.items() if k != "temperature"}


def move(row: Service) -> None:
    Provider.objects.filter(pk=row.provider.pk).update(endpoint="https://two.test/v1")


def change_protocol(row: Service) -> None:
    Provider.objects.filter(pk=row.provider.pk).update(protocol="anthropic")


def change_model(row: Service) -> None:
    Service.objects.filter(pk=row.pk).update(model="gpt-6")


def delete(row: Service) -> None:
    row.delete()


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("change", [move, change_protocol, change_model, delete])
def test_it_is_forgotten_when_model_or_address_changes(
    service: Service, change: Callable[[Service], None], is_running: bool
) -> None:
    """Running processes and later ones forget it, refused values included, and the rows are deleted."""
    process = learn("temperature")
    process.memory.refuse(*PLACE, "reasoning_effort", value_only=True)
    change(service)
    snapshot.refresh()
    if not is_running:
        process = Process()
    process.look()
    assert process.memory.refusals(*PLACE) == ()
    assert not LearnedRefusal.objects.exists()


def test_other_changes_of_the_configuration_forget_nothing(service: Service) -> None:
    process = learn("temperature", "top_p")
    Service.objects.filter(pk=service.pk).update(name="renamed")
    snapshot.refresh()
    assert process.look().known == Process().look().known == LEARNED


def test_refused_values_and_unconfigured_models_are_known_in_memory_alone() -> None:
    """Another value may be accepted, and callers can invent any number of model names."""
    process = Process().look()
    process.memory.refuse(*PLACE, "reasoning_effort", value_only=True)
    process.memory.refuse("picky", "made-up", "seed")
    process.look()
    assert not LearnedRefusal.objects.exists()
    assert process.memory.lasting("picky", "made-up") == {"seed": None}
    assert len(process.memory.refusals(*PLACE)) == 1


def test_what_the_database_does_not_take_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process().look()
    process.memory.refuse(*PLACE, "seed")

    def refuse(*_: object) -> None:
        raise DatabaseError

    with monkeypatch.context() as broken:
        broken.setattr(kept_refusals, "write_refusals", refuse)
        with pytest.raises(DatabaseError):
            process.look()
    assert process.look().known == Process().look().known == {"seed": None}


def test_a_round_without_news_asks_the_database_nothing(django_assert_num_queries: Callable[..., object]) -> None:
    process = learn("temperature")
    with django_assert_num_queries(0), django_assert_num_queries(0, using="logs"):  # type: ignore[attr-defined]
        process.kept.look()
