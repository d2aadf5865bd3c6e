"""What a configuration change means for routes and agents, computed before the change is made."""

from __future__ import annotations

from dataclasses import replace

from capabilities.core.consequence import Gravity
from capabilities.core.vocabulary import Capabilities
from routing_admin.core.configuration.removals import removed_names, switch_off, without_items
from routing_admin.core.configuration.specs import (
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    Configuration,
    LanguageSpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.consequences import consequences

URL = "https://models.example/v1"


def service(name: str, provider: str, *reads: str) -> ServiceSpec:
    return ServiceSpec(name, name, provider, name, URL, Capabilities(("text", *reads), ("text",)))


def route(task: str, *names: str) -> RouteSpec:
    return RouteSpec(task, tuple(CandidateSpec(*name.split("/")) for name in names))


HERE = Configuration(
    providers=(ProviderSpec("qwen", URL, "qwen-vl"), ProviderSpec("deepseek", URL, "chat")),
    services=(service("qwen-vl", "qwen", "vision"), service("chat", "deepseek")),
    routes=(
        route("default", "deepseek/chat"),
        route("design", "deepseek/chat", "qwen/qwen-vl"),
        route("look", "qwen/qwen-vl"),
    ),
    aliases=(AliasSpec("gpt-4-vision", "qwen-vl"), AliasSpec("gpt-4", "task:look")),
    agents=(
        AgentSpec("eyes", "Eyes", service_id="qwen-vl"),
        AgentSpec("painter", "Painter", task_type="look"),
        AgentSpec("writer", "Writer", task_type="writing"),
    ),
    languages=(LanguageSpec("pt", "Responda em português."), LanguageSpec("en", "English, please.")),
)


def list_consequences(after: Configuration, before: Configuration = HERE, **unusable: str) -> list[str]:
    changes = consequences(before, after, {name: (SkipReason.NO_KEY, reason) for name, reason in unusable.items()})
    return [consequence.sentence for consequence in changes]


def test_disabling_a_service_lists_stopped_routes_and_agents_before_degraded_routes() -> None:
    """One route loses its only model and cannot answer, which affects two agents. Another route loses its last model
    that reads images.
    """
    after = switch_off(HERE, "service", ["qwen-vl"])
    assert list_consequences(after) == [
        "look has no model left that can be called.",
        "The agent eyes no longer reaches any model.",
        "The agent painter no longer reaches any model.",
        "design loses its last model that reads images.",
        "No agent is left to read images.",
        "design loses qwen-vl.",
    ]
    assert [consequence.gravity for consequence in consequences(HERE, after)].count(Gravity.STOPS) == 3


def test_disabling_a_provider_lists_the_consequences_of_all_its_models() -> None:
    assert list_consequences(switch_off(HERE, "provider", ["deepseek"])) == [
        "default has no model left that can be called.",
        "The agent writer no longer reaches any model.",
        "design starts with qwen-vl instead of chat.",
    ]


def test_model_of_a_deleted_service_becomes_text_only() -> None:
    """The model can still be called, so the candidate remains, but it is no longer known to read images."""
    before = replace(HERE, agents=(), aliases=())
    assert list_consequences(without_items(before, "service", ["qwen-vl"]), before) == [
        "design loses its last model that reads images.",
        "look loses its last model that reads images.",
    ]


def test_candidate_that_loses_vision_is_reported_even_if_other_candidates_keep_vision() -> None:
    more = replace(HERE, services=(*HERE.services, service("qwen-plus", "qwen", "vision")), agents=(), aliases=())
    before = replace(more, routes=(route("design", "qwen/qwen-vl", "qwen/qwen-plus"),))
    assert list_consequences(without_items(before, "service", ["qwen-plus"]), before) == [
        "In design, qwen/qwen-plus gets images as descriptions."
    ]


def test_disabling_a_provider_without_a_key_has_no_consequences() -> None:
    """A provider without a key was already skipped."""
    before = replace(HERE, agents=(), aliases=())
    assert list_consequences(switch_off(before, "provider", ["qwen"]), before, qwen="qwen has no key") == []


def test_removing_a_route_lists_its_replacement_route_and_dangling_aliases() -> None:
    """Agents that used a removed route then use the default route. Aliases that name the removed route are invalid."""
    assert list_consequences(without_items(HERE, "route", ["look"])) == [
        "The alias gpt-4 no longer leads anywhere.",
        "The agent painter no longer reads images.",
        "look is removed; its tasks go to default.",
    ]
    assert "design is removed, and no route takes its tasks." in list_consequences(
        without_items(HERE, "route", ["default", "design", "look"])
    )
    assert list_consequences(switch_off(HERE, "route", ["design"])) == ["design is disabled; its tasks go to default."]


def test_deleting_agents_lists_their_keys_and_the_lost_capability() -> None:
    both = ["eyes", "painter"]
    assert list_consequences(without_items(HERE, "agent", both)) == [
        "No agent is left to read images.",
        "The agent eyes is deleted, and its keys stop working.",
        "The agent painter is deleted, and its keys stop working.",
    ]


def test_assigning_another_service_to_an_agent_lists_lost_capabilities() -> None:
    blind = replace(HERE.agents[0], service_id="chat")
    assert list_consequences(replace(HERE, agents=(blind, *HERE.agents[1:]))) == [
        "The agent eyes no longer reads images."
    ]


def test_removing_a_language_lists_its_replacement() -> None:
    assert list_consequences(without_items(HERE, "language", ["pt"])) == ["Requests in pt are answered in en."]
    assert list_consequences(without_items(HERE, "language", ["en"])) == [
        "The directive for en becomes: Please respond in English."
    ]


def test_removing_an_unused_model_has_no_consequences() -> None:
    more = replace(HERE, services=(*HERE.services, service("spare", "qwen")))
    assert list_consequences(without_items(more, "service", ["spare"]), more) == []
    assert list_consequences(HERE) == []


def test_removed_names_are_listed_by_kind() -> None:
    after = without_items(without_items(HERE, "route", ["look", "design"]), "language", ["pt"])
    assert removed_names(HERE, after) == {"route": ("design", "look"), "language": ("pt",)}
