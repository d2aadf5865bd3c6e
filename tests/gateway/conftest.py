"""Fixtures that several modules share: the vendors' SDKs, connected to the module's `server`, and stored responses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.serving import Server
from tests.processes import NO_CERTIFICATES, wait_until

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    import openai

    local = openai.DefaultHttpxClient(verify=NO_CERTIFICATES)
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0, http_client=local)


@pytest.fixture
def claude(server: Server) -> anthropic.Anthropic:
    import anthropic

    local = anthropic.DefaultHttpxClient(verify=NO_CERTIFICATES)
    return anthropic.Anthropic(api_key=server.key, base_url=server.url, max_retries=0, http_client=local)


@pytest.fixture
def google(server: Server) -> genai.Client:
    """Return a google-genai client with its default API version, `v1`."""
    from google import genai

    local: Any = {"client_args": {"verify": NO_CERTIFICATES}, "async_client_args": {"ssl": NO_CERTIFICATES}}
    return genai.Client(api_key=server.key, http_options={"base_url": server.url, **local})


@pytest.fixture
def reset_lab(server: Server) -> None:
    """Clear the fault lab's script and its record of requests."""
    server.lab.play({})


@pytest.fixture
def isolated_kept_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discard kept answers that other tests have queued, and do not retry lookups for answers of other processes."""
    from routing_admin.gateway.responses import references
    from routing_admin.request_log.kept_answers import kept_answers

    monkeypatch.setattr(kept_answers(), "_waiting", {})
    monkeypatch.setattr(references, "RETRY_DELAYS", ())


@pytest.fixture
def within_one_minute() -> None:
    """If less than 10 seconds of this minute remain, wait for the next. Limits count per calendar minute."""
    wait_until(lambda: time.time() % 60 < 50)
