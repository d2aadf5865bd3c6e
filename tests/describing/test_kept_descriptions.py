"""The first outcome of describing a file stands: words for everybody, a failure for its conversation, while used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from artifacts.actions import delete_artifacts, store_bytes
from capabilities.acts import SYSTEM
from capabilities.core.describing.key import description_key
from routing_admin.actions.pruning import UNDO, prune
from routing_admin.descriptions.store import DescriptionOutcome, find_description, keep_description
from routing_admin.models import FileDescription
from tests.gateway.plane import PNG

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

KEY = description_key("c" * 64, "seer", "en", None)
WORDS = DescriptionOutcome("seer", "A cat.", "", 7, 3)
FAILURE = DescriptionOutcome("seer", fault="http_500")


def test_words_are_everybody_s() -> None:
    """What one conversation paid for another has, too."""
    assert keep_description(KEY, "mine", WORDS) == WORDS
    assert find_description(KEY, "yours") == WORDS


def test_a_failure_is_its_conversation_s() -> None:
    """Another conversation was asked nothing yet."""
    assert keep_description(KEY, "mine", FAILURE) == FAILURE
    assert (find_description(KEY, "mine"), find_description(KEY, "yours")) == (FAILURE, None)


@pytest.mark.parametrize(
    "change",
    [{"content": "d" * 64}, {"describer": "other"}, {"prompt_version": 99}, {"language": "zh"}, {"question": "q"}],
    ids=lambda change: next(iter(change)),
)
def test_every_part_of_the_key_counts(change: dict[str, object]) -> None:
    """Another file, describer, prompt, language or question is another description."""
    keep_description(KEY, "mine", WORDS)
    assert find_description(replace(KEY, **change), "mine") is None


def test_what_is_used_stays_and_what_is_not_goes() -> None:
    """As long as requests are kept, counted from the last use."""
    now = datetime.now(UTC)
    for name in ("a", "b"):
        keep_description(replace(KEY, describer=name), "mine", WORDS)
    FileDescription.objects.update(used_at=now - timedelta(days=29))
    find_description(replace(KEY, describer="a"), "mine")
    prune(SYSTEM, now + timedelta(days=2))
    assert find_description(replace(KEY, describer="a"), "mine") is not None
    assert find_description(replace(KEY, describer="b"), "mine") is None


def test_what_was_said_of_a_file_goes_with_its_bytes() -> None:
    """A deleted artifact leaves no description behind."""
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png")
    key = replace(KEY, content=row.sha256)
    keep_description(key, "mine", WORDS)
    delete_artifacts(SYSTEM, [row.pk])
    prune(SYSTEM, datetime.now(UTC) + UNDO + timedelta(minutes=1))
    assert find_description(key, "mine") is None


class TestFirstOutcome(TestCase):
    """In any order in which conversations ask and describers succeed or fail."""

    databases = {"default", "logs"}

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""])), min_size=1, max_size=12))
    def test_a_conversation_never_hears_otherwise(self, outcomes: list[tuple[str, str]]) -> None:
        """What it was given first it is given ever after, whatever others bring about in between."""
        first: dict[str, DescriptionOutcome] = {}
        for conversation, words in outcomes:
            outcome = DescriptionOutcome("seer", words, "" if words else "http_500")
            given_now = keep_description(KEY, conversation, outcome)
            first.setdefault(conversation, given_now)
            for each, was in first.items():
                assert find_description(KEY, each) == was
