"""Endpoints `POST /v1/responses` and `/v1/responses/input_tokens`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.wire import Answer
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import error_body, json_reply
from routing_admin.gateway.http import HttpReply, build_call, build_response
from routing_admin.gateway.keep_alive import COMMENT
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.parsing import needs_thread, parse
from routing_admin.gateway.responses.references import resolve_references
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from routing_admin.gateway.token_counts import TokenCounting, count_reply


def _write_answer(answer: Answer, call: ChatCall, name: str, origin: str) -> HttpReply:
    return json_reply(response_json(answer, call, name, origin))


def _write_events(call: ChatCall, name: str, origin: str) -> ResponseEvents:
    head = ResponseHead(name, call.chat, call.keep is not None, call.previous)
    return ResponseEvents(head, origin, call.namespaces, keep=call.keep)


def _write_count(tokens: int) -> dict[str, Any]:
    return {"object": "response.input_tokens", "input_tokens": tokens}


RESPONSES = ChatApi(
    "/v1/responses",
    parse,
    needs_thread,
    _write_answer,
    _write_events,
    error_body,
    keep_alive=COMMENT,
    resolve=resolve_references,
)
COUNTING = TokenCounting("/v1/responses/input_tokens", RESPONSES, _write_count)


@csrf_exempt
async def responses(request: HttpRequest) -> HttpResponseBase:
    """Serve the API as a Django view, for servers that run Django without our ASGI application."""
    return build_response(await complete(RESPONSES, build_call(request)))


@csrf_exempt
def input_tokens(request: HttpRequest) -> HttpResponseBase:
    """Return the estimated number of tokens in a request."""
    return build_response(count_reply(COUNTING, build_call(request)))
