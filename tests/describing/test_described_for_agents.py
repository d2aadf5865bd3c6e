"""get_artifact and /messages/route describe a file only on request, and only for a key that may call models.

The request has the parameter `describe`. A file's facts are its name, type and size. A model that cannot read the file
receives them instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cast import AgentProgram, limit_agent
from tests.describing.describers import DESCRIPTION, describing_lab, received_bodies
from tests.gateway.plane import PNG, logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


def message(ref: str, **more: Any) -> dict[str, Any]:
    attachment = {"type": "image", "artifactRef": ref}
    return {"message": {"text": "look", "attachments": [attachment]}, "language": "en", **more}


def test_file_is_not_described_without_the_describe_parameter(text_agent: AgentProgram) -> None:
    with describing_lab() as lab:
        ref = text_agent.stored("dot.png", PNG)["ref"]
        plain = text_agent.artifact(ref, language="en")
        routed = text_agent.post("/messages/route", message(ref)).json()
        assert received_bodies(lab, "seer") == []
    assert DESCRIPTION not in str((plain, routed))
    assert "warnings" not in plain


def test_get_artifact_appends_the_description_to_the_file_facts(text_agent: AgentProgram) -> None:
    with describing_lab() as lab:
        ref = text_agent.stored("dot.png", PNG)["ref"]
        facts = text_agent.artifact(ref, language="en")["content"]
        answers = [text_agent.get(f"/artifacts/{ref}", language="en", describe="true") for _ in range(2)]
        assert len(received_bodies(lab, "seer")) == 1
    contents = [answer.json()["content"] for answer in answers]
    assert contents[0] == contents[1]
    assert contents[0].startswith(f"{facts}\nDescribed by seer, not seen by you:\n```\n> {DESCRIPTION}\n```")
    call_row = logged(f"{answers[0].headers['x-request-id']}.d1")
    assert (call_row.surface, call_row.agent) == ("describe", "text-agent")


def test_routed_message_contains_the_description(text_agent: AgentProgram) -> None:
    with describing_lab():
        ref = text_agent.stored("dot.png", PNG)["ref"]
        routed = text_agent.post("/messages/route", message(ref, describe=True)).json()
    assert f"> {DESCRIPTION}" in routed["textDescription"]
    assert f"> {DESCRIPTION}" in routed["processedContent"]


def test_file_readable_by_the_service_is_not_described(vision_agent: AgentProgram) -> None:
    with describing_lab() as lab:
        ref = vision_agent.stored("dot.png", PNG)["ref"]
        assert vision_agent.get(f"/artifacts/{ref}", describe="true").json()["routing"] == "image_url"
        assert vision_agent.post("/messages/route", message(ref, describe=True)).json()["canProcess"]
        assert received_bodies(lab, "seer") == []


def test_failed_description_is_a_warning_and_is_not_cached(text_agent: AgentProgram) -> None:
    """The failure is not stored, because no conversation depends on it. The next request calls the describer again."""
    with describing_lab({"seer": ["http_422", f"say:{DESCRIPTION}"]}):
        ref = text_agent.stored("dot.png", PNG)["ref"]
        failed = text_agent.get(f"/artifacts/{ref}", describe="true").json()
        again = text_agent.get(f"/artifacts/{ref}", describe="true").json()
    assert failed["warnings"] == ["describer_failed"]
    assert DESCRIPTION not in failed["content"]
    assert DESCRIPTION in again["content"]


def test_missing_describe_route_is_reported_as_a_warning(text_agent: AgentProgram) -> None:
    ref = text_agent.stored("dot.png", PNG)["ref"]
    assert text_agent.get(f"/artifacts/{ref}", describe="true").json()["warnings"] == ["no_describer"]


def test_describing_requires_a_key_that_may_call_models(caller: Callable[..., AgentProgram]) -> None:
    """Describing a file calls a model."""
    reader = caller("text-agent", "artifacts:read", "artifacts:write")
    ref = reader.stored("dot.png", PNG)["ref"]
    answers = [
        reader.get(f"/artifacts/{ref}", describe="true"),
        reader.post("/messages/route", message(ref, describe=True)),
    ]
    assert [(answer.status_code, answer.json()["scope"]) for answer in answers] == [(403, "route")] * 2


def test_agent_without_access_to_the_describe_route_gets_only_file_facts(text_agent: AgentProgram) -> None:
    limit_agent(models=["task:planning"])
    with describing_lab() as lab:
        ref = text_agent.stored("dot.png", PNG)["ref"]
        assert text_agent.get(f"/artifacts/{ref}", describe="true").json()["warnings"] == ["no_describer"]
        assert received_bodies(lab, "seer") == []
