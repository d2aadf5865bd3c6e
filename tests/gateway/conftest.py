"""The vendors' SDKs as clients of the server that a module starts in its fixture `server`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.serving import Server

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    import openai

    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0)


@pytest.fixture
def claude(server: Server) -> anthropic.Anthropic:
    import anthropic

    return anthropic.Anthropic(api_key=server.key, base_url=server.url, max_retries=0)


@pytest.fixture
def google(server: Server) -> genai.Client:
    """Return a client with its default API version, `v1`."""
    from google import genai

    return genai.Client(api_key=server.key, http_options={"base_url": server.url})


@pytest.fixture
def reset_lab(server: Server) -> None:
    """Clear the lab's script and its record of requests."""
    server.lab.play({})
