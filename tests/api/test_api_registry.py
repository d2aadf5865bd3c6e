"""Services, agents, tools and messages over the agents' API."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from api_samples import mp3, pdf, png
from django.test import Client
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.texts.description import parse_all
from capabilities.core.vocabulary import Capabilities
from capabilities.models import Agent, Service
from routing_admin.configuration import snapshot
from routing_admin.console.services.actions import save_service
from routing_admin.models import Revision

DIRECTIONS = ("input", "output", "both")
pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.mark.requirement("MCR-6.1", "MCR-6.2", "MCR-P7")
def test_services_are_listed_with_capabilities_and_without_keys(text_agent: Any) -> None:
    response = text_agent.get("/services")
    services = {service["id"]: service for service in response.json()["services"]}
    assert list(services)[:3] == ["text-model", "vision-model", "multimodal-model"]
    assert services["vision-model"]["capabilities"] == {
        "input": ["text", "vision"],
        "output": ["text", "structured_output"],
    }
    assert services["vision-model"]["baseURL"] == "https://api.example.com/v1"
    assert "apikey" not in response.content.decode().lower()
    assert "api_key" not in response.content.decode().lower()


@pytest.mark.requirement("MCR-6.4", "MCR-P7")
@pytest.mark.parametrize(("direction", "expected"), [("input", True), ("output", False), ("both", False), (None, True)])
def test_services_are_filtered_by_input_or_output_capability(
    direction: str | None, expected: bool, text_agent: Any
) -> None:
    """`vision` is an input capability of vision-model. If no direction is given, input is assumed."""
    query = {"direction": direction} if direction else {}
    answer = text_agent.get("/services/vision-model/has-capability", type="vision", **query)
    assert answer.json() == {"supported": expected}
    ids = [service["id"] for service in text_agent.get("/services", capability="vision", **query).json()["services"]]
    assert ("vision-model" in ids) is expected


@pytest.mark.requirement("MCR-6.1", "MCR-6.2", "MCR-E3")
def test_unknown_service_has_no_capability(text_agent: Any) -> None:
    assert text_agent.get("/services/unknown/has-capability", type="text").json() == {"supported": False}
    missing = text_agent.get("/services/unknown/capabilities")
    assert (missing.status_code, missing.json()["error"]) == (404, "not_found")
    known = text_agent.get("/services/multimodal-model/capabilities").json()
    assert known["input"] == ["text", "vision", "audio", "file"]


@pytest.mark.parametrize("path", ["/services", "/agents", "/services/vision-model/has-capability?type=vision"])
def test_unknown_direction_is_rejected_with_the_allowed_values(path: str, text_agent: Any) -> None:
    mark = "&" if "?" in path else "?"
    response = text_agent.client.get(f"/api/v1{path}{mark}direction=sideways", headers=text_agent.headers)
    assert response.status_code == 422
    assert response.json()["details"][0]["path"] == "direction"


def test_has_capability_needs_a_type(text_agent: Any) -> None:
    response = text_agent.get("/services/vision-model/has-capability")
    assert response.status_code == 422
    assert response.json()["details"][0]["path"] == "type"


@pytest.mark.requirement("MCR-4.1", "MCR-4.2")
def test_agents_are_found_by_capability(text_agent: Any) -> None:
    assert text_agent.get("/agents", capability="vision").json() == {"agents": ["multimodal-agent", "vision-agent"]}
    assert text_agent.get("/agents", capability="smell").json() == {"agents": []}
    assert set(text_agent.get("/agents").json()["agents"]) >= {"text-agent", "vision-agent", "multimodal-agent"}


@pytest.mark.requirement("MCR-4.3", "MCR-4.4", "MCR-6.3")
def test_agent_reads_its_capabilities_limits_and_capable_agents(text_agent: Any) -> None:
    me = text_agent.get("/agents/me").json()
    assert me["id"] == "text-agent"
    assert me["serviceId"] == "text-model"
    assert me["capabilities"]["input"] == ["text"]
    assert me["forwardTo"]["vision"] == ["multimodal-agent", "vision-agent"]
    assert me["forwardTo"]["file"] == ["multimodal-agent"]
    # Only the response of /agents/me contains the limits of the agent and the key, and the key's labels.
    unset_fields = {"limits": None, "keyLimits": None, "keyLabels": {"team": None, "project": None}}
    assert {**text_agent.get("/agents/text-agent").json(), **unset_fields} == me
    assert text_agent.get("/agents/unknown").status_code == 404


def test_agent_can_create_a_limited_number_of_agents(text_agent: Any, settings: Any) -> None:
    settings.MAX_MADE_AGENTS = 2
    for name in ("eye-1", "eye-2", "eye-2"):
        assert text_agent.call("PUT", f"/agents/{name}", {"serviceId": "vision-model"}).status_code == 200
    refused = text_agent.call("PUT", "/agents/eye-3", {"serviceId": "vision-model"})
    assert (refused.status_code, refused.json()["error"]) == (409, "too_many")
    assert "ROUTING_ADMIN_MAX_MADE_AGENTS" in refused.json()["message"]
    Agent.objects.filter(agent_id="eye-1").update(expires_at=timezone.now())
    assert text_agent.call("PUT", "/agents/eye-3", {"serviceId": "vision-model"}).status_code == 200
    assert text_agent.call("PUT", "/agents/eye-1", {"serviceId": "vision-model"}).status_code == 409
    text_agent.call("DELETE", "/agents/eye-2")
    assert text_agent.call("PUT", "/agents/eye-1", {"serviceId": "vision-model"}).status_code == 200


def test_agents_page_lists_a_limited_number_and_counts_the_rest(admin: Client) -> None:
    """Listing all of two thousand agents would take seconds."""
    Agent.objects.bulk_create(Agent(agent_id=f"made-{number:04}") for number in range(2_000))
    page = admin.get("/agents/").content.decode()
    row_count = page.count('<th scope="row">')
    assert row_count == 25
    assert "1 to 25 of" in page
    assert "made-1999" in admin.get("/agents/", {"q": "made-1999"}).content.decode()


@pytest.mark.requirement("MCR-4.2")
def test_agent_is_created_and_removed_at_run_time_idempotently(text_agent: Any) -> None:
    revisions = Revision.objects.count()
    for _ in range(2):
        response = text_agent.call("PUT", "/agents/eye-1", {"name": "Eye", "serviceId": "vision-model"})
        assert response.status_code == 200, response.content
    assert response.json()["capabilities"]["input"] == ["text", "vision"]
    assert "eye-1" in text_agent.get("/agents", capability="vision").json()["agents"]
    for _ in range(2):
        assert text_agent.call("DELETE", "/agents/eye-1").status_code == 204
    assert "eye-1" not in text_agent.get("/agents", capability="vision").json()["agents"]
    assert Revision.objects.count() == revisions


def test_created_agent_may_use_a_route_and_be_selected_by_its_creator_only(text_agent: Any) -> None:
    text_agent.call("PUT", "/agents/planner", {"taskType": "planning"})
    acting = text_agent.get("/agents/me", headers={"x-agent-id": "planner"})
    assert acting.json()["id"] == "planner"
    refused = text_agent.get("/agents/me", headers={"x-agent-id": "vision-agent"})
    assert (refused.status_code, refused.json()["error"]) == (403, "agent_forbidden")


def test_expired_agent_is_missing(text_agent: Any) -> None:
    text_agent.call("PUT", "/agents/short", {"serviceId": "vision-model", "expiresInSeconds": 60})
    Agent.objects.filter(agent_id="short").update(expires_at=timezone.now() - timedelta(seconds=1))
    snapshot.refresh()
    assert text_agent.get("/agents/short").status_code == 404


def test_agent_expires_without_any_other_change(text_agent: Any) -> None:
    """The expiry is checked against the configuration snapshot in memory."""
    expiring = AgentProfile("eye", capabilities=Capabilities(("text", "vision")), expires_at=100.0)
    lasting = AgentProfile("ear", capabilities=Capabilities(("text", "audio")))
    directory = AgentDirectory([expiring, lasting])
    assert directory.select_living(99.9).find_capable("vision") == ["eye"]
    assert directory.select_living(100.0).forward_to("ear") == {"vision": [], "audio": [], "file": []}
    text_agent.call("PUT", "/agents/blink", {"serviceId": "vision-model", "expiresInSeconds": 60})
    state = snapshot.current()
    end = next(agent.expires_at for agent in state.agents if agent.id == "blink")
    assert end is not None
    assert "blink" in state.directory
    assert "blink" not in state.all_agents.select_living(end)


def test_agents_are_found_by_output_capability(text_agent: Any) -> None:
    """`output` searches the model's output capabilities, `both` its input and output capabilities (MCR-4.2)."""
    agents = {
        (capability, direction): text_agent.get("/agents", capability=capability, direction=direction).json()["agents"]
        for capability in ("structured_output", "vision")
        for direction in DIRECTIONS
    }
    assert "vision-agent" in agents["structured_output", "output"]
    assert "vision-agent" not in agents["structured_output", "input"] + agents["structured_output", "both"]
    assert "vision-agent" in agents["vision", "input"]
    assert "vision-agent" not in agents["vision", "output"] + agents["vision", "both"]


def test_agent_with_a_route_has_the_capabilities_of_its_first_enabled_candidate(text_agent: Any) -> None:
    text_agent.call("PUT", "/agents/designer", {"taskType": "design"})
    agent = text_agent.get("/agents/designer").json()
    first = text_agent.get(f"/services/{agent['serviceId']}/capabilities").json()
    assert (agent["taskType"], agent["capabilities"]) == ("design", first)
    assert agent["chain"]["all"] == ["text"]
    assert "vision" in agent["chain"]["some"]
    row = Service.objects.get(service_id=agent["serviceId"])
    row.enabled = False
    save_service(SYSTEM, row)
    next_one = text_agent.get("/agents/designer").json()
    assert next_one["serviceId"] not in (None, agent["serviceId"])
    assert "chain" not in text_agent.get("/agents/text-agent").json()


def test_agent_with_a_disabled_service_is_not_suggested(text_agent: Any) -> None:
    """A disabled service cannot be called, so its agent counts as text-only until it is enabled again."""
    row = Service.objects.get(service_id="vision-model")
    row.enabled = False
    save_service(SYSTEM, row)
    assert text_agent.get("/agents", capability="vision").json() == {"agents": ["multimodal-agent"]}
    assert text_agent.get("/agents/vision-agent").json()["capabilities"]["input"] == ["text"]


@pytest.mark.parametrize(
    ("agent_id", "body", "path"),
    [
        ("a", {"serviceId": "unknown"}, "serviceId"),
        ("a", {"taskType": "nothing"}, "taskType"),
        ("a", {"serviceId": "text-model", "taskType": "planning"}, "serviceId"),
        ("a", {"expiresInSeconds": -1}, "expiresInSeconds"),
        ("a", {"name": 5}, "name"),
        ("a b", {}, "id"),
        ("x" * 121, {}, "id"),
    ],
)
def test_invalid_agent_is_rejected_with_its_path(agent_id: str, body: Any, path: str, text_agent: Any) -> None:
    response = text_agent.call("PUT", f"/agents/{agent_id}", body)
    assert response.status_code == 422
    assert response.json()["details"][0]["path"] == path
    assert not Agent.objects.filter(agent_id=agent_id).exists()


def test_agent_cannot_change_agents_of_other_owners(text_agent: Any, vision_agent: Any) -> None:
    vision_agent.call("PUT", "/agents/eye-2", {"serviceId": "vision-model"})
    for agent_id in ("eye-2", "multimodal-agent"):
        assert text_agent.call("PUT", f"/agents/{agent_id}", {}).status_code == 409
        assert text_agent.call("DELETE", f"/agents/{agent_id}").status_code == 403
        assert Agent.objects.filter(agent_id=agent_id).exists()


def test_tools_are_function_definitions_in_the_requested_language(text_agent: Any) -> None:
    tools = text_agent.get("/tools", language="zh").json()["tools"]
    assert {"get_artifact", "find_capable_agents"} <= {tool["function"]["name"] for tool in tools}
    assert all(tool["type"] == "function" and tool["function"]["parameters"]["type"] == "object" for tool in tools)
    assert "工件" in str(tools)


def attachment(artifact: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"type": kind, "artifactRef": artifact["ref"]}


@pytest.mark.requirement("MCR-2.1", "MCR-2.2", "MCR-2.3", "MCR-2.4", "MCR-2.5", "MCR-2.6", "MCR-P2", "MCR-P3")
def test_message_is_routed_by_the_capabilities_of_the_service(text_agent: Any) -> None:
    files = {
        "image": text_agent.stored("photo.png", png(), "image/png"),
        "audio": text_agent.stored("talk.mp3", mp3(), "audio/mpeg"),
        "file": text_agent.stored("report.pdf", pdf(), "application/pdf"),
    }
    message = {"text": "看看这些", "attachments": [attachment(artifact, kind) for kind, artifact in files.items()]}
    capable = text_agent.post("/messages/route", {"message": message, "serviceId": "multimodal-model"}).json()
    assert capable["canProcess"] is True
    assert "textDescription" not in capable
    assert [part["type"] for part in capable["processedContent"]] == ["text", "image_url", "input_audio", "file"]
    assert base64.b64encode(png()).decode() in capable["processedContent"][1]["image_url"]["url"]
    text_only = text_agent.post("/messages/route", {"message": message}).json()
    assert text_only["canProcess"] is False
    assert isinstance(text_only["processedContent"], str)
    assert text_only["processedContent"] == f"看看这些\n\n{text_only['textDescription']}"
    assert [unsupported["type"] for unsupported in text_only["unsupportedAttachments"]] == ["image", "audio", "file"]
    for data in (png(), mp3(), pdf()):
        assert base64.b64encode(data).decode()[:24] not in text_only["processedContent"]


@pytest.mark.requirement("MCR-3.1", "MCR-3.2", "MCR-3.3", "MCR-3.4", "MCR-3.5", "MCR-3.6", "MCR-P4")
def test_description_names_the_file_and_the_agents_that_can_read_it(text_agent: Any) -> None:
    artifact = text_agent.stored("photo.png", png(), "image/png")
    body = {"message": {"text": "", "attachments": [attachment(artifact, "image")]}, "language": "zh"}
    text = text_agent.post("/messages/route", body).json()["textDescription"]
    assert text.startswith("【收到附件】\n类型: 图片\n文件名: photo.png\n工件ID: artifact:")
    assert "multimodal-agent, vision-agent" in text
    (description,) = parse_all(text)
    assert (description.artifact_ref, description.filename, description.mime_type) == (
        artifact["ref"],
        "photo.png",
        "image/png",
    )


@pytest.mark.requirement("MCR-E4")
def test_unreadable_attachment_keeps_its_reference(vision_agent: Any, text_agent: Any) -> None:
    private = text_agent.stored("mine.png", png(), "image/png", visibility="private")
    for ref in (private["ref"], "artifact:0123456789abcdef0123456789abcdef", "artifact:../x"):
        message = {"text": "", "attachments": [{"type": "image", "artifactRef": ref, "filename": "x.png"}]}
        body = vision_agent.post("/messages/route", {"message": message, "language": "zh"}).json()
        assert body["canProcess"] is False
        assert "[文件处理失败: x.png]" in body["textDescription"]
        assert ref in body["textDescription"]


def test_required_capabilities_begin_with_text_and_are_listed_once(text_agent: Any) -> None:
    message = {
        "text": "x",
        "attachments": [
            {"type": kind, "artifactRef": "artifact:a"} for kind in ("image", "image", "audio", "document")
        ],
    }
    answer = text_agent.post("/messages/required-capabilities", {"message": message}).json()
    assert answer == {"capabilities": ["text", "vision", "audio", "file"]}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "message"),
        ({"message": {"text": 5}}, "message.text"),
        ({"message": {"attachments": [{"type": "image"}]}}, "message.attachments[0].artifactRef"),
        ({"message": {"attachments": [{"artifactRef": "a", "size": -1}]}}, "message.attachments[0].size"),
    ],
)
def test_invalid_message_is_rejected_with_all_paths(body: Any, path: str, text_agent: Any) -> None:
    for call in ("/messages/route", "/messages/required-capabilities"):
        response = text_agent.post(call, body)
        assert response.status_code == 422
        assert path in [detail["path"] for detail in response.json()["details"]]


def test_error_for_a_missing_scope_names_the_scope(caller: Callable[..., Any]) -> None:
    reader = caller("text-agent", "artifacts:read")
    assert reader.get("/artifacts").status_code == 200
    refused = reader.get("/services")
    assert (refused.status_code, refused.json()["scope"]) == (403, "registry:read")
