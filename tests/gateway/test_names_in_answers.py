"""The model's name in an answer, the headers that name the provider, and the language directive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routing_admin.configuration import snapshot
from routing_admin.models import Alias
from tests.gateway.asgi_caller import Call, headers
from tests.gateway.plane import said

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ALIASES = {"my-model": "echo-text", "my-pair": "echo/echo-text", "gpt-4o": "task:planning", "*": "auto"}
AS_ASKED = ("echo-text", "echo/echo-text", "my-model", "my-pair", "gpt-4o", "gpt-99")
# An unknown task uses the default route.
ROUTES = ("task:planning", "planning", "auto", "task:unheard-of")
DIRECTIVE = "请使用中文回答。"


@pytest.fixture
def names(key: str) -> str:
    """Create aliases of a service, of a provider and model, of a route, and a catch-all; return the agent's key."""
    for name, target in ALIASES.items():
        Alias.objects.create(name=name, target=target)
    snapshot.refresh()
    return key


async def answer(key: str, model: str, *, stream: bool, **more: Any) -> tuple[dict[str, str], set[str], str]:
    """Return the headers, the model names in every object of the answer, and its text."""
    body = json.dumps(said("hello", model=model, stream=stream, **more)).encode()
    call = await Call([body], headers(key, len(body))).run()
    assert call.status == 200, call.answer
    lines = call.answer.decode().split("\n\n") if stream else [call.answer.decode()]
    objects = [json.loads(line.removeprefix("data: ")) for line in lines if "{" in line]
    pieces = [each["choices"][0]["delta" if stream else "message"].get("content") or "" for each in objects]
    return call.answer_headers, {each["model"] for each in objects}, "".join(pieces)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [*AS_ASKED, *ROUTES])
async def test_an_answer_calls_its_model_as_the_caller_knows_it(names: str, model: str, stream: bool) -> None:
    """An alias, a service id and a `provider/model` are repeated; for a route the model that answered is named. The
    headers always name the model that answered.
    """
    said_by, found, _ = await answer(names, model, stream=stream)
    assert found == {model if model in AS_ASKED else "echo-text"}
    assert (said_by["x-routing-provider"], said_by["x-routing-model"]) == ("echo", "echo-text")


async def test_a_task_type_beside_the_name_is_a_route(names: str) -> None:
    """`task_type` takes precedence over the name, so the answer names the model that answered."""
    _, found, words = await answer(names, "echo-text", stream=False, task_type="planning")
    assert (found, DIRECTIVE in words) == ({"echo-text"}, True)


@pytest.mark.requirement("MMR-P11")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [*AS_ASKED, *ROUTES])
async def test_a_model_asked_for_by_name_is_told_a_language_only_if_the_call_has_one(
    names: str, model: str, stream: bool
) -> None:
    """A service, a `provider/model` and their aliases receive the messages unchanged unless the call names a language.
    A route adds its language directive.
    """
    _, _, words = await answer(names, model, stream=stream)
    is_route = model in (*ROUTES, "gpt-4o", "gpt-99")
    assert (DIRECTIVE in words, "1. system" in words) == (is_route, is_route)
    _, _, words = await answer(names, model, stream=stream, language="en-GB")
    assert "Please respond in English." in words
