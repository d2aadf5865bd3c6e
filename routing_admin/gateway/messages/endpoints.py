"""Endpoints `POST /v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.protocols.vendor_tools import BETA_HEADER
from capabilities.core.wire import Answer
from routing_admin.gateway.body import read_object
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import json_reply
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpCall, HttpReply, build_call, build_response
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.parsing import needs_thread, parse
from routing_admin.gateway.messages.rendering import error_json, message_json
from routing_admin.gateway.messages.thinking_blocks import shows_thinking
from routing_admin.gateway.token_counts import TokenCounting, count_reply


def _write_answer(answer: Answer, call: ChatCall, name: str, origin: str) -> HttpReply:
    return json_reply(message_json(answer, call, name, origin))


def _write_events(call: ChatCall, name: str, origin: str) -> MessageEvents:
    return MessageEvents(name, origin, thinks=shows_thinking(call.chat))


def _write_count(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens}


ID = "request-id"
"""Header in which Anthropic's clients expect the request id."""
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
"""Anthropic's own keep-alive event, which may occur anywhere in a stream."""


def read_message(call: HttpCall) -> Object:
    """Return the body with the beta features that the header `anthropic-beta` names, not those that a field names."""
    body = read_object(call)
    body.pop(BETA_HEADER, None)
    if betas := call.headers.get(BETA_HEADER):
        body[BETA_HEADER] = betas
    return body


MESSAGES = ChatApi(
    "/v1/messages", parse, needs_thread, _write_answer, _write_events, error_json, ID, read_message, keep_alive=PING
)
COUNTING = TokenCounting("/v1/messages/count_tokens", MESSAGES, _write_count)


@csrf_exempt
async def messages(request: HttpRequest) -> HttpResponseBase:
    """Serve the API as a Django view, for servers that run Django without our ASGI application."""
    return build_response(await complete(MESSAGES, build_call(request)))


@csrf_exempt
def count_tokens(request: HttpRequest) -> HttpResponseBase:
    """Return the estimated number of a request's tokens."""
    return build_response(count_reply(COUNTING, build_call(request)))
