"""The table of alert kinds: messages in both languages, and the page where the cause can be fixed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.utils.translation import gettext, override

from capabilities.core.translatable import decode_text, encode_text
from capabilities.sentences import translate_sentence
from routing_admin.core.alerts.kinds import KINDS, AlertKind, Stage, build_condition

ROOT = Path(__file__).resolve().parents[2]
FACTS = {"name": "deepseek", "status": "401", "percent": 80, "meter": "Tokens per day", "free": 12}
MORE_FACTS = {"day": "2026-11-01", "problem": "routes: a name is repeated.", "server": "one", "seconds": 7, "count": 2}
SENTENCES = [(kind, stage) for kind in AlertKind for stage in KINDS[kind].sentences]


def test_every_alert_kind_has_a_row_in_the_table():
    assert list(KINDS) == list(AlertKind)


@pytest.mark.parametrize("kind", AlertKind)
def test_every_alert_kind_links_to_an_existing_heading_and_is_documented(kind):
    file, _, anchor = KINDS[kind].page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(), re.MULTILINE)
    assert anchor in [heading.lower().replace(" ", "-") for heading in headings] or not anchor
    assert f"| `{kind}` |" in (ROOT / "docs/alerts.md").read_text()


@pytest.mark.parametrize(("kind", "stage"), SENTENCES)
def test_every_alert_message_survives_storage_and_is_translated(kind, stage):
    condition = build_condition(kind, "subject", stage, **FACTS, **MORE_FACTS)
    restored = decode_text(encode_text(condition.sentence))
    assert restored == condition.sentence
    with override("zh-hans"):
        sentence, title, remedy = translate_sentence(restored), gettext(KINDS[kind].title), gettext(KINDS[kind].remedy)
    assert re.search("[一-鿿]", sentence)
    assert re.search("[一-鿿]", title)
    assert re.search("[一-鿿]", remedy)
    assert "%(" not in sentence + condition.sentence


def test_message_names_the_subject_if_the_alert_has_no_name():
    assert "deepseek" in build_condition(AlertKind.KEY_REFUSED, "deepseek", Stage.USUAL, status="401").sentence
