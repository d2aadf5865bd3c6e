"""LangChain's standard tests for chat models against a served `/v1`: each API, with a model behind each protocol."""

from __future__ import annotations

import base64
import json
import os
import wave
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests, chat_models
from sample_pdf import PDF

MODELS = json.loads(os.environ["CLIENTS_MODELS"])

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def wav() -> bytes:
    out = BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return out.getvalue()


@pytest.fixture(autouse=True)
def _files_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the files that the suite downloads with small files of the same type."""
    files = {"png": PNG, "pdf": PDF, "wav": wav()}

    def get(url: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(content=files[url.rpartition(".")[2]])

    monkeypatch.setattr(chat_models.httpx, "get", get)


URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
CLASSES: dict[str, type[BaseChatModel]] = {"Chat": ChatOpenAI, "Responses": ChatOpenAI, "Messages": ChatAnthropic}
PARAMS: dict[str, dict[str, Any]] = {
    "Chat": {"base_url": URL, "api_key": KEY, "stream_usage": True},
    "Responses": {"base_url": URL, "api_key": KEY, "use_responses_api": True},
    "Messages": {"base_url": URL.removesuffix("/v1"), "api_key": KEY},
}


class Standard(ChatModelIntegrationTests):
    """Settings for all APIs and protocols. The suite's tests are unchanged."""

    __test__ = False
    chat_api = protocol = ""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return CLASSES[self.chat_api]

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODELS[self.protocol], "max_retries": 0, **PARAMS[self.chat_api]}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_image_urls(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True

    @property
    def supports_pdf_inputs(self) -> bool:
        return True

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True

    @property
    def supports_audio_inputs(self) -> bool:
        return self.chat_api != "Messages"  # LangChain has no audio input for Anthropic.

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return next(name for protocol, name in MODELS.items() if protocol != self.protocol)

    @property
    def supported_usage_metadata_details(self) -> dict[str, list[str]]:
        return {"invoke": ["cache_read_input"], "stream": ["cache_read_input"]}

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        """Call the model. The fault lab reports three cached tokens for every prompt."""
        model = self.chat_model_class(**self.chat_model_params)
        if not stream:
            return model.invoke("Hello")
        pieces = iter(model.stream("Hello"))
        whole: Any = next(pieces)
        for piece in pieces:
            whole += piece
        return whole


def cases() -> dict[str, type[Standard]]:
    return {
        f"Test{chat_api}Over_{protocol.replace('-', '_')}": type(
            f"Test{chat_api}Over_{protocol.replace('-', '_')}",
            (Standard,),
            {"__test__": True, "chat_api": chat_api, "protocol": protocol},
        )
        for chat_api in CLASSES
        for protocol in MODELS
    }


globals().update(cases())
