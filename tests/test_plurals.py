"""A count of one is followed by a singular noun: no page, error or command says “1 requests”."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capabilities.core.delivery.obstacles import SENTENCES
from capabilities.core.translatable import pluralize
from routing_admin.core.limits.sentences import LIMIT_SENTENCES

CATALOGUE = Path(__file__).parents[1] / "routing_admin/locale/zh_Hans/LC_MESSAGES/django.po"
ONE_OF_MANY = re.compile(
    r"\b1 (?:\w+ )?(?:agents|artifacts|bytes|calls|candidates|changes|days|edits|errors|files|hours|images|keys|lines|"
    r"minutes|models|pages|providers|requests|retries|routes|rows|sessions|services|tokens|times|tries)\b"
)
FACT = re.compile(r"%\(\w+\)[sd]")


def test_every_singular_message_fits_a_count_of_one() -> None:
    text = CATALOGUE.read_text(encoding="utf-8")
    counted = re.findall(r'^msgid "(.*)"\nmsgid_plural "(.*)"$', text, re.MULTILINE)
    assert len(counted) > 50
    assert [
        singular
        for singular, _ in counted
        if ONE_OF_MANY.search(re.sub(r"%\((?:count|counter|number)\)[sd]", "1", singular))
    ] == []


@pytest.mark.parametrize("template", [*LIMIT_SENTENCES.values()], ids=str)
def test_limit_message_with_a_count_of_one_is_singular(template: str) -> None:
    assert not ONE_OF_MANY.search(FACT.sub("1", template))


def test_too_many_files_message_with_a_count_of_one_is_singular() -> None:
    assert not ONE_OF_MANY.search(FACT.sub("1", SENTENCES["too_many_files"]))


def test_pluralize_uses_the_singular_for_one() -> None:
    assert [pluralize(number, "request") for number in (0, 1, 2000)] == ["0 requests", "1 request", "2,000 requests"]
    assert [pluralize(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
