"""The model name in a response, the headers that name the provider, and the instruction to respond in a language."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routing_admin.configuration import snapshot
from routing_admin.models import Alias
from tests.gateway.asgi_caller import Call, headers
from tests.gateway.plane import chat_body

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ALIASES = {"my-model": "echo-text", "my-pair": "echo/echo-text", "gpt-4o": "task:planning", "*": "auto"}
REPEATED_NAMES = ("echo-text", "echo/echo-text", "my-model", "my-pair", "gpt-4o", "gpt-99")
# An unknown task uses the default route.
ROUTES = ("task:planning", "planning", "auto", "task:unheard-of")
DIRECTIVE = "请使用中文回答。"


@pytest.fixture
def key_with_aliases(key: str) -> str:
    """Create aliases for a service, a provider's model and a route, and a catch-all alias. Return the agent's key."""
    for name, target in ALIASES.items():
        Alias.objects.create(name=name, target=target)
    snapshot.refresh()
    return key


async def answer(key: str, model: str, *, stream: bool, **more: Any) -> tuple[dict[str, str], set[str], str]:
    """Return the headers, the model name in each of the response's objects, and the response's text."""
    body = json.dumps(chat_body("hello", model=model, stream=stream, **more)).encode()
    call = await Call([body], headers(key, len(body))).run()
    assert call.status == 200, call.answer
    lines = call.answer.decode().split("\n\n") if stream else [call.answer.decode()]
    objects = [json.loads(line.removeprefix("data: ")) for line in lines if "{" in line]
    pieces = [item["choices"][0]["delta" if stream else "message"].get("content") or "" for item in objects]
    return call.answer_headers, {item["model"] for item in objects}, "".join(pieces)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [*REPEATED_NAMES, *ROUTES])
async def test_answer_repeats_the_model_name_that_the_caller_sent(
    key_with_aliases: str, model: str, stream: bool
) -> None:
    """An alias, a service id or `provider/model` is repeated as the caller wrote it.

    A call to a route returns the name of the model that answered. The headers always name the model that answered.
    """
    response_headers, models, _ = await answer(key_with_aliases, model, stream=stream)
    assert models == {model if model in REPEATED_NAMES else "echo-text"}
    assert (response_headers["x-routing-provider"], response_headers["x-routing-model"]) == ("echo", "echo-text")


async def test_task_type_takes_precedence_over_the_model_name(key_with_aliases: str) -> None:
    _, models, text = await answer(key_with_aliases, "echo-text", stream=False, task_type="planning")
    assert (models, DIRECTIVE in text) == ({"echo-text"}, True)


@pytest.mark.requirement("MMR-P11")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [*REPEATED_NAMES, *ROUTES])
async def test_model_called_by_name_gets_a_directive_only_if_the_call_names_a_language(
    key_with_aliases: str, model: str, stream: bool
) -> None:
    """A service, a `provider/model` and their aliases receive the messages unchanged, unless the call names a language.

    A route adds its instruction to answer in a language.
    """
    _, _, text = await answer(key_with_aliases, model, stream=stream)
    is_route = model in (*ROUTES, "gpt-4o", "gpt-99")
    assert (DIRECTIVE in text, "1. system" in text) == (is_route, is_route)
    _, _, text = await answer(key_with_aliases, model, stream=stream, language="en-GB")
    assert "Please respond in English." in text
