"""The request id and trace headers that a provider receives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from capabilities.actors import SYSTEM
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import passed_headers
from routing_admin.configuration import snapshot
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.send import Dispatch
from routing_admin.upstream import process_upstream, run_sync
from tests.lab import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALLER = {"traceparent": TRACE, "tracestate": "a=1", "x-request-id": "what the caller wrote", "x-secret": "mine"}


def headers_received(quirks: Mapping[str, Any], caller: Mapping[str, str] = CALLER) -> Mapping[str, str]:
    with Lab({"lab": "ok"}) as lab:
        provider = {"providerName": "lab", "apiKey": "sk-lab", "endpoint": lab.url(), "defaultModel": "lab"}
        file = {"providers": [{**provider, "quirks": quirks}], "routing": {"traced": {"provider": "lab", "retries": 0}}}
        import_configuration(SYSTEM, [json.dumps(file)])
        state = snapshot.current()
        chat = ChatRequest((Message(Role.USER, (TextPart("hello"),)),))
        planned = plan_request(state, state.configuration.route("traced"), chat)
        run_sync(Dispatch(planned, request_id="my-call", caller_headers=caller).answer())
        run_sync(process_upstream().close())
        (received,) = lab.requests
        return received.headers


def test_no_caller_headers_are_forwarded_by_default(demo: None):
    sent = headers_received({})
    assert not {"x-request-id", "x-client-request-id", "traceparent", "tracestate", "x-secret"} & {*sent}


@pytest.mark.parametrize("name", ["X-Client-Request-Id", "x-ms-client-request-id"])
def test_request_id_is_forwarded_under_the_configured_header(demo: None, name: str):
    """The forwarded id is the gateway's request id, as in the response and the log, and not the caller's."""
    sent = headers_received({"request_id_header": name})
    assert sent[name.lower()] == "my-call"
    assert "traceparent" not in sent


def test_trace_headers_are_forwarded_unchanged_if_configured(demo: None):
    sent = headers_received({"trace_context": True})
    assert (sent["traceparent"], sent["tracestate"]) == (TRACE, "a=1")
    assert "traceparent" not in headers_received({"trace_context": True}, {})


@pytest.mark.parametrize(
    ("endpoint", "expected"), [("https://api.openai.com/v1", True), ("https://api.deepseek.com/v1", False)]
)
def test_only_the_openai_host_receives_the_request_id_by_default(endpoint: str, expected: bool):
    """Only OpenAI's own host accepts `X-Client-Request-Id`."""
    assert ("x-request-id" in passed_headers(quirks_for(endpoint, {}))) is expected
