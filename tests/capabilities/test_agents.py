"""AgentDirectory finds the agents that can read a kind of content."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import FilePart
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.vocabulary import Capabilities, Direction, Kind

WRITER = AgentProfile("writer", "Writer", "Writes chapters", "text-model")
SEER = AgentProfile("seer", "Seer", "Sees", "vision-model", Capabilities(("text", "vision"), ("text", "audio")))
ALL_EARS = AgentProfile("all-ears", service_id="omni", capabilities=Capabilities(("text", "vision", "audio", "file")))
AGENTS = AgentDirectory([WRITER, SEER, ALL_EARS])

capabilities = st.sampled_from(("text", "vision", "audio", "video", "file"))
capability_lists = st.lists(capabilities, max_size=5).map(tuple)
profiles = st.lists(
    st.builds(
        AgentProfile,
        id=st.text(min_size=1),
        capabilities=st.builds(Capabilities, input=capability_lists, output=capability_lists),
    ),
    max_size=5,
    unique_by=lambda agent: agent.id,
)


@pytest.mark.requirement("MCR-4.1", "MCR-4.2")
@given(profiles, capabilities, st.sampled_from(list(Direction)))
def test_capable_agents_are_listed_in_directory_order_for_each_direction(
    agents: list[AgentProfile], capability: str, direction: Direction
) -> None:
    capable = AgentDirectory(agents).find_capable(capability, direction)
    assert capable == [agent.id for agent in agents if agent.capabilities.has(capability, direction)]


def test_input_and_output_capabilities_are_distinguished() -> None:
    assert AGENTS.find_capable("audio") == ["all-ears"]
    assert AGENTS.find_capable("audio", "output") == ["seer"]
    assert AGENTS.find_capable("audio", "both") == []
    assert AGENTS.find_capable("text", "both") == ["writer", "seer", "all-ears"]


def test_invalid_direction_finds_no_agent_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert AGENTS.find_capable("text", "sideways") == []
    assert "sideways" in caplog.text


@pytest.mark.requirement("MCR-4.3")
def test_agent_context_has_its_capabilities_and_helpers() -> None:
    """The context is the response to GET /agents/me."""
    assert AGENTS.context("seer") == {
        "id": "seer",
        "name": "Seer",
        "description": "Sees",
        "serviceId": "vision-model",
        "capabilities": {"input": ["text", "vision"], "output": ["text", "audio"]},
        "forwardTo": {"vision": ["all-ears"], "audio": ["all-ears"], "file": ["all-ears"]},
    }
    assert AGENTS.context("unknown") is None


@pytest.mark.requirement("MCR-4.4")
@given(profiles, capabilities)
def test_forward_to_lists_the_other_agents_with_the_capability(agents: list[AgentProfile], capability: str) -> None:
    directory = AgentDirectory(agents)
    for agent in agents:
        helpers = directory.forward_to(agent.id)
        assert {"vision", "audio", "file"} <= set(helpers)
        assert helpers.get(capability, []) == (
            []
            if capability == "text"
            else [other.id for other in agents if other is not agent and other.capabilities.has(capability)]
        )


def test_forward_to_lists_video_only_if_an_agent_reads_video() -> None:
    assert list(AGENTS.forward_to("writer")) == ["vision", "audio", "file"]
    watcher = AgentProfile("watcher", capabilities=Capabilities(("text", "video")))
    assert AgentDirectory([WRITER, watcher]).forward_to("writer") == {
        "vision": [],
        "audio": [],
        "file": [],
        "video": ["watcher"],
    }


READ_BY_DEFAULT = {
    Kind.TEXT: ["writer", "seer", "all-ears"],
    Kind.IMAGE: ["seer", "all-ears"],
    Kind.AUDIO: ["all-ears"],
    Kind.VIDEO: [],
    Kind.DOCUMENT: ["all-ears"],
    Kind.OTHER: ["all-ears"],
}


@pytest.mark.parametrize("kind", list(Kind))
def test_agent_reads_a_content_kind_by_default_if_it_has_the_capability(kind: Kind) -> None:
    assert AGENTS.find_readers(FilePart(kind)) == READ_BY_DEFAULT[kind]


@pytest.mark.requirement("MCR-4.4")
def test_custom_can_read_function_decides_which_agents_read_a_file() -> None:
    def small_enough(agent: AgentProfile, file: FilePart) -> bool:
        return (file.size or 0) <= {"seer": 10, "all-ears": 100}.get(agent.id, 0)

    assert AGENTS.find_readers(FilePart(Kind.IMAGE, size=10), small_enough) == ["seer", "all-ears"]
    assert AGENTS.find_readers(FilePart(Kind.IMAGE, size=11), small_enough) == ["all-ears"]
    assert AGENTS.find_readers(FilePart(Kind.IMAGE, size=11), small_enough, exclude="all-ears") == []


def test_first_of_two_agents_with_the_same_id_is_used() -> None:
    directory = AgentDirectory([WRITER, AgentProfile("writer", "Another")])
    assert len(directory) == 1
    assert directory.get("writer") is WRITER
    assert "writer" in directory
    assert "unknown" not in directory
