"""An agent's limits on routes and services apply in every API and to every name that a model has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.models import Agent
from routing_admin.configuration.agents.actions import put_agent
from routing_admin.models import Revision
from tests.cast import AgentProgram, create_key, limit_agent
from tests.console.page import Page
from tests.gateway.plane import chat_body, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def listed_models(key: str) -> list[str]:
    answer = Client().get("/v1/models", headers={"authorization": f"Bearer {key}"})
    return [model["id"] for model in answer.json()["data"]]


def read_error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("name", ["task:planning", "planning", "text-model"])
def test_every_name_of_an_allowed_route_or_service_is_accepted(key: str, name: str) -> None:
    limit_agent(models=["task:planning", "text-model"])
    answer = post(key, chat_body("hello", model=name))
    assert answer.status_code != 403


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/messages", {"max_tokens": 9}),
        ("/v1/messages/count_tokens", {}),
    ],
)
@pytest.mark.parametrize("name", ["task:design", "auto", "vision-model", "echo/echo-text", "task:unheard-of"])
def test_other_model_names_are_403_and_the_error_lists_the_allowed_names(
    key: str, path: str, more: Any, name: str
) -> None:
    """An unknown task is not allowed either, because it uses the default route."""
    limit_agent(models=["task:planning", "text-model"])
    answer = post(key, chat_body("hello", model=name, **more), path)
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert f"cannot use '{name}'. It can use: task:planning, text-model." in error["message"]
    assert path.startswith("/v1/messages") or error["code"] == "model_not_allowed"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_responses_api_refuses_a_model_that_is_not_allowed(key: str, path: str) -> None:
    limit_agent(models=["task:planning"])
    answer = post(key, {"model": "task:design", "input": "hello"}, path)
    assert read_error(answer) == (403, "model_not_allowed")


def test_model_list_has_only_the_models_that_the_agent_may_use(key: str) -> None:
    everything = listed_models(key)
    limit_agent(models=["task:planning", "text-model"])
    assert listed_models(key) == ["task:planning", "text-model"]
    answer = Client().get("/v1/models/task:design", headers={"authorization": f"Bearer {key}"})
    assert read_error(answer) == (403, "model_not_allowed")
    limit_agent()
    assert listed_models(key) == everything


def test_fallback_of_an_allowed_route_needs_no_permission(key: str) -> None:
    limit_agent(models=["task:design"])
    answer = post(key, chat_body("hello", model="task:design"))
    assert (answer.status_code, answer.headers["x-routing-attempts"]) == (200, "2")


def test_agents_api_refuses_routes_that_are_not_allowed(caller: Callable[..., AgentProgram]) -> None:
    program = caller("text-agent")
    limit_agent(models=["task:planning"])
    for path in ("/llm/send", "/llm/resolve"):
        assert program.post(path, {"prompt": "hello", "taskType": "planning"}).status_code == 200
        refused = program.post(path, {"prompt": "hello"})
        assert (refused.status_code, refused.json()["error"]) == (403, "model_not_allowed")


def test_agent_created_at_run_time_has_its_creators_limits(demo: None) -> None:
    """An agent cannot escape its limits by creating another agent."""
    key = create_key("text-agent", scopes=["route", "agents:write"])
    put_agent(SYSTEM, "text-agent", "made")
    limit_agent(models=["task:planning"])
    answer = post(key, chat_body("hello", model="task:design"), **{"x-agent-id": "made"})
    assert read_error(answer) == (403, "model_not_allowed")


def test_key_of_a_created_agent_is_bound_by_its_creators_limits(demo: None) -> None:
    """The key of an agent created at run time may use only the names that the key and all its ancestors allow."""
    limit_agent(models=["task:planning", "text-model"])
    put_agent(SYSTEM, "text-agent", "made")
    put_agent(SYSTEM, "made", "made-of-made")
    own = {"limits": {"models": ["text-model", "vision-model"]}}
    for agent in ("made", "made-of-made"):
        assert listed_models(create_key(agent)) == ["task:planning", "text-model"]
        assert read_error(post(create_key(agent), chat_body("hello", model="task:design"))) == (
            403,
            "model_not_allowed",
        )
        assert listed_models(create_key(agent, terms=own)) == ["text-model"]


def test_agent_page_sets_allowed_models_and_history_undoes_the_change(admin: Client, key: str) -> None:
    form = {"name": "Text", "service": "", "task_type": "planning"}
    answer = admin.post("/agents/text-agent/", {**form, "models": "task:planning\ntext-model", "version": "1"})
    assert answer.status_code == 302
    page = Page(admin.get("/agents/text-agent/"))
    assert page.shows("Can only use these routes and model services:")
    revision = Revision.objects.latest("number")
    assert listed_models(key) == ["task:planning", "text-model"]
    admin.post(f"/history/{revision.number - 1}/restore/", {"seen": "1"})
    assert Agent.objects.get(agent_id="text-agent").limits == {}


def test_unknown_name_among_the_allowed_models_is_refused_by_the_agent_page(admin: Client, demo: None) -> None:
    answer = admin.post("/agents/text-agent/", {"name": "Text", "models": "task:planing", "version": "1"})
    assert answer.status_code == 422
    assert Page(answer).shows("There is no route or service task:planing.")
    assert Agent.objects.get(agent_id="text-agent").limits == {}
