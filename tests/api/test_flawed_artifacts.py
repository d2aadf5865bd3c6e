"""Damaged and password-protected files, requested by agents whose model can read files of this type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from artifacts.library import store_bytes
from capabilities.actors import SYSTEM
from capabilities.core.texts.description import parse, parse_all
from routing_admin.dispatch.preview import preview

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

DOCUMENTS = Path(__file__).parents[1] / "artifacts" / "files"
LOCKED = (DOCUMENTS / "locked.docx").read_bytes()
FILES = pytest.mark.parametrize(
    ("name", "data", "flaw"),
    [("plan.docx", LOCKED, "locked"), ("plan.pdf", b"%PDF-1.7\n" + b"torn \xff\0" * 20, "damaged")],
    ids=["locked", "damaged"],
)


@FILES
@pytest.mark.parametrize("language", ["en", "zh"])
def test_get_artifact_describes_a_flawed_file_with_the_reason(
    language: str, name: str, data: bytes, flaw: str, text_agent: Any
) -> None:
    """No other agent is suggested, since none could open the file either."""
    ref = text_agent.stored(name, data)["ref"]
    answer = text_agent.artifact(ref, serviceId="multimodal-model", language=language)
    block = parse(answer["content"])
    assert (answer["routing"], "file" in answer, "suggestedAgents" in answer) == ("text", False, False)
    assert block is not None
    assert (block.block, block.language, block.filename, block.flaw) == ("unreadable", language, name, flaw)
    assert text_agent.get(f"/artifacts/{ref}/raw").getvalue() == data


@FILES
def test_routed_message_describes_a_flawed_file_with_the_reason(
    name: str, data: bytes, flaw: str, text_agent: Any
) -> None:
    attachment = {"type": "file", "artifactRef": text_agent.stored(name, data)["ref"]}
    body = {"serviceId": "multimodal-model", "message": {"text": "look", "attachments": [attachment]}}
    routed = text_agent.post("/messages/route", body).json()
    blocks = parse_all(routed["textDescription"])
    assert (routed["canProcess"], "base64" in str(routed)) == (False, False)
    assert [(block.flaw, block.agents) for block in blocks] == [(flaw, ())]


@FILES
def test_preview_describes_a_flawed_file_with_the_reason(name: str, data: bytes, flaw: str, demo: None) -> None:
    shown = preview(store_bytes(SYSTEM, data, filename=name)).deliveries
    result = next(delivery.as_json() for delivery in shown if delivery.service_id == "multimodal-model")
    assert result["routing"] == "text"
    assert [block.flaw for block in parse_all(result["content"])] == [flaw]


def test_intact_document_is_delivered_unchanged(text_agent: Any) -> None:
    ref = text_agent.stored("a.docx", (DOCUMENTS / "office.docx").read_bytes())["ref"]
    answer = text_agent.artifact(ref, serviceId="multimodal-model")
    assert answer["routing"] == "file"
