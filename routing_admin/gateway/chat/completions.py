"""Endpoint `POST /v1/chat/completions`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.wire import Answer
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat.parsing import needs_thread, parse
from routing_admin.gateway.chat.rendering import Chunks, completion_json, merge_completions
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import error_body, json_reply
from routing_admin.gateway.http import HttpReply, build_call, build_response
from routing_admin.gateway.keep_alive import COMMENT


def _write_answer(answer: Answer, call: ChatCall, name: str, origin: str) -> HttpReply:
    return json_reply(completion_json(answer, name, origin, old_calls=call.old_calls))


def _write_events(call: ChatCall, name: str, origin: str) -> Chunks:
    return Chunks(name, call.include_usage, call.old_calls, origin=origin, choice=call.choice)


# OpenAI's field `n` is the number of requested answers.
COMPLETIONS = ChatApi(
    "/v1/chat/completions",
    parse,
    needs_thread,
    _write_answer,
    _write_events,
    error_body,
    keep_alive=COMMENT,
    count_field="n",
    merge=merge_completions,
)


@csrf_exempt
async def completions(request: HttpRequest) -> HttpResponseBase:
    """Serve the API as a Django view, for servers that run Django without our ASGI application."""
    return build_response(await complete(COMPLETIONS, build_call(request)))
