"""A conversation on `/v1` keeps its prefix when agents change and when the limit on images is reached."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from capabilities.actors import SYSTEM
from capabilities.core.message import ChatRequest, FilePart, Message, Part, Role, TextPart
from capabilities.core.vocabulary import Kind
from capabilities.models import Agent, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents import actions as agents
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.dispatch.simulation import simulate

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def picture(number: int) -> FilePart:
    return FilePart(Kind.IMAGE, "image/png", f"{number}.png", url=f"https://example.org/{number}.png")


def conversation(turns: int) -> ChatRequest:
    messages: list[Message] = []
    for number in range(turns):
        parts: tuple[Part, ...] = (TextPart("look"), picture(number))
        messages += [Message(Role.USER, parts), Message(Role.ASSISTANT, (TextPart("I see"),))]
    return ChatRequest(tuple(messages[:-1]))


def payload(model: str, chat: ChatRequest) -> list[Any]:
    route = RouteSpec("now", (CandidateSpec("echo", model),))
    done = simulate(snapshot.current(), route, chat, language="en", agent="text-agent")
    return list(done.stops[0].payload["messages"])


def test_agent_created_at_run_time_does_not_change_the_payload(demo: None) -> None:
    """File descriptions name only configured agents."""
    before = payload("echo-text", conversation(10))
    agents.put_agent(SYSTEM, "text-agent", "eye-1", service_id="vision-model")
    snapshot.refresh()
    assert payload("echo-text", conversation(10)) == before
    assert "Agents that can process it: multimodal-agent, vision-agent" in str(before)


def test_configured_agents_are_named_in_page_order_in_descriptions(demo: None) -> None:
    agents.save_agent(SYSTEM, Agent(agent_id="painter", service=Service.objects.get(service_id="vision-model")))
    snapshot.refresh()
    assert "Agents that can process it: multimodal-agent, painter, vision-agent" in str(
        payload("echo-text", conversation(1))
    )


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("zh", "没有已配置的智能体能够处理此类内容。"),
        ("en", "No configured agent can process this type of content."),
    ],
)
def test_description_states_that_no_configured_agent_can_process_the_file(
    demo: None, language: str, sentence: str
) -> None:
    """Agents created at run time do not count as configured."""
    agents.put_agent(SYSTEM, "text-agent", "eye-1", service_id="vision-model")
    Agent.objects.filter(agent_id__in=["vision-agent", "multimodal-agent"]).update(service=None)
    snapshot.refresh()
    route = RouteSpec("now", (CandidateSpec("echo", "echo-text"),))
    done = simulate(snapshot.current(), route, conversation(1), language=language, agent="text-agent")
    assert sentence in str(done.stops[0].payload)
    assert "eye-1" not in str(done.stops[0].payload)


def test_exceeded_image_limit_replaces_half_of_the_images_at_once(demo: None) -> None:
    """In the three turns after half of the images were replaced, no earlier message changes."""
    Service.objects.filter(service_id="echo-vision").update(limits={"image": {"maxCount": 8}})
    snapshot.refresh()
    turns = [payload("echo-vision", conversation(count)) for count in range(1, 14)]
    changed = [
        sum(before != after for before, after in zip(earlier, later, strict=False))
        for earlier, later in itertools.pairwise(turns)
    ]
    # Four images are replaced at the ninth image, and four more at the thirteenth.
    assert changed == [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4]
