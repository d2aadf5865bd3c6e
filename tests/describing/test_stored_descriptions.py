"""Stored descriptions are shared by all conversations. A failure is stored for each conversation that it affected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from artifacts.library import delete_artifacts, store_bytes
from capabilities.actors import SYSTEM
from capabilities.core.describing.prompt import description_key
from routing_admin.console.settings.pruning import UNDO_WINDOW, prune
from routing_admin.dispatch.descriptions.store import (
    FAILURE_LIFETIME,
    DescriptionOutcome,
    find_description,
    settle_description,
    store_description,
)
from routing_admin.models import FileDescription
from tests.gateway.plane import PNG

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

KEY = description_key("c" * 64, "seer", "en", None)
SUCCESS = DescriptionOutcome(describer="seer", words="A cat.", fault="", prompt_tokens=7, completion_tokens=3)
FAILURE = DescriptionOutcome(describer="seer", fault="http_500")


def test_description_is_shared_with_other_conversations() -> None:
    assert store_description(KEY, "mine", SUCCESS) == SUCCESS
    assert find_description(KEY, "yours") == SUCCESS


def test_stored_failure_applies_only_to_its_own_conversation() -> None:
    assert store_description(KEY, "mine", FAILURE) == FAILURE
    assert (find_description(KEY, "mine"), find_description(KEY, "yours")) == (FAILURE, None)


@pytest.mark.parametrize(
    "change",
    [{"content": "d" * 64}, {"describer": "other"}, {"prompt_version": 99}, {"language": "zh"}, {"question": "q"}],
    ids=lambda change: next(iter(change)),
)
def test_description_is_found_only_with_an_identical_key(change: dict[str, object]) -> None:
    """A different file, describer, prompt version, language or question requires its own description."""
    store_description(KEY, "mine", SUCCESS)
    assert find_description(replace(KEY, **change), "mine") is None


def test_only_recently_used_descriptions_are_kept() -> None:
    """Descriptions are kept as long as logged requests, but the time counts from a description's last use."""
    now = datetime.now(UTC)
    for name in ("a", "b"):
        store_description(replace(KEY, describer=name), "mine", SUCCESS)
    FileDescription.objects.update(used_at=now - timedelta(days=29))
    find_description(replace(KEY, describer="a"), "mine")
    prune(SYSTEM, now + timedelta(days=2))
    assert find_description(replace(KEY, describer="a"), "mine") is not None
    assert find_description(replace(KEY, describer="b"), "mine") is None


def test_deleting_an_artifact_deletes_its_description() -> None:
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png")
    key = replace(KEY, content=row.sha256)
    store_description(key, "mine", SUCCESS)
    delete_artifacts(SYSTEM, [row.pk])
    prune(SYSTEM, datetime.now(UTC) + UNDO_WINDOW + timedelta(minutes=1))
    assert find_description(key, "mine") is None


def expire_failures() -> None:
    """Backdate all failures so that their cooldown has ended."""
    FileDescription.objects.exclude(fault="").update(created_at=datetime.now(UTC) - FAILURE_LIFETIME)


def test_failed_description_is_retried_after_the_cooldown() -> None:
    """A describer's second failure starts the cooldown again."""
    for _ in range(2):
        store_description(KEY, "mine", FAILURE)
        assert find_description(KEY, "mine") == FAILURE
        expire_failures()
        assert find_description(KEY, "mine") is None
    assert store_description(KEY, "mine", SUCCESS) == find_description(KEY, "mine") == SUCCESS


def test_unanswered_conversation_immediately_uses_a_description_from_another_conversation() -> None:
    store_description(KEY, "mine", FAILURE)
    store_description(KEY, "yours", SUCCESS)
    assert find_description(KEY, "mine") == SUCCESS
    assert find_description(KEY, "mine", "answered") == FAILURE


class TestConversations(TestCase):
    """Steps of several conversations about one file, in any order."""

    databases = {"default", "logs"}

    @given(
        st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from(["words", "failure", "answer", "time passes"])), max_size=30
        )
    )
    def test_answered_conversation_always_gets_the_same_description_outcome(self, steps: list[tuple[int, str]]) -> None:
        outcomes: dict[int, DescriptionOutcome] = {}
        answered: dict[int, str] = {}
        for conversation, step in steps:
            opening = f"opening {conversation % 2}"
            if step == "time passes":
                expire_failures()
            elif step == "answer" and conversation in outcomes and conversation not in answered:
                answered[conversation] = f"answer {conversation}"
                if outcomes[conversation].fault:
                    settle_description(KEY, opening, outcomes[conversation], answered[conversation])
            elif conversation not in answered:
                outcome = SUCCESS if step == "words" else FAILURE
                outcomes[conversation] = deliver(opening, outcome, "")
            for number, answer in answered.items():
                # The describer would fail now, which must not affect a conversation that already has an outcome.
                assert deliver(f"opening {number % 2}", FAILURE, answer) == outcomes[number]


def deliver(opening: str, outcome: DescriptionOutcome, answered: str) -> DescriptionOutcome:
    """Return the outcome for a request. If the describer is called, it returns the given outcome."""
    stored = find_description(KEY, opening, answered) or store_description(KEY, opening, outcome, answered)
    if stored.unsettled:
        settle_description(KEY, opening, stored, answered)
    return stored
