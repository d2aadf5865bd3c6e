"""The program `llm` and its Anthropic plug-in call each chat API of a running gateway, with models of each protocol."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from itertools import product
from typing import Any

import llm
import pytest
from llm.default_plugins.openai_models import Chat, Responses
from llm_anthropic import ClaudeMessages

URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CAPABLE: Any = {"vision": True, "supports_schema": True, "supports_tools": True}
CHAT_APIS: dict[str, Callable[[str], Any]] = {
    "chat": lambda name: Chat(name, model_name=name, api_base=URL, **CAPABLE),
    "responses": lambda name: Responses(name, model_name=name, api_base=URL, **CAPABLE),
    "messages": lambda name: ClaudeMessages(
        name, base_url=URL.removesuffix("/v1"), supports_pdf=True, use_structured_outputs=True
    ),
}


@pytest.fixture(params=product(CHAT_APIS, MODELS), ids="-".join)
def model(request: pytest.FixtureRequest) -> Any:
    chat_api, protocol = request.param
    return CHAT_APIS[chat_api](MODELS[protocol])


@pytest.mark.parametrize("stream", [False, True])
def test_prompt_is_answered(model: Any, stream: bool) -> None:
    response = model.prompt("hello", system="Be brief.", key=KEY, stream=stream)
    assert response.text() == "You said: hello"
    assert response.usage().output == 7


def test_conversation_is_continued(model: Any) -> None:
    conversation = model.conversation()
    conversation.prompt("hello", key=KEY).text()
    assert conversation.prompt("and now?", key=KEY).text() == "You said: and now?"


def test_image_arrives_unchanged(model: Any) -> None:
    response = model.prompt("Look", attachments=[llm.Attachment(type="image/png", content=PNG)], key=KEY)
    assert response.text() == "You said: Look [image/png, 70 bytes]"


def test_answer_follows_the_json_schema(model: Any) -> None:
    response = model.prompt("'Zürich' has 443037 inhabitants", schema=llm.schema_dsl("name, people int"), key=KEY)
    assert json.loads(response.text()) == {"name": "Zürich", "people": 443037}


def test_tool_is_called(model: Any) -> None:
    arguments = []

    def double(number: int) -> int:
        """Return twice the number."""
        arguments.append(number)
        return 2 * number

    chain = model.conversation().chain("double the number 21, then answer in words", tools=[double], key=KEY)
    assert chain.text().strip().startswith("You said: ")
    assert arguments == [21]


def test_unknown_model_raises_an_error() -> None:
    for make in CHAT_APIS.values():
        with pytest.raises(Exception, match="unknown-model"):
            make("unknown-model").prompt("hello", key=KEY).text()
