"""Endpoints `POST /v1beta/models/{name}` with `:generateContent`, `:streamGenerateContent` or `:countTokens`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

import orjson
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.wire import Answer
from routing_admin.gateway.body import read_object
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat_api import SSE, ChatApi, ChatCall
from routing_admin.gateway.choices import enclose_list
from routing_admin.gateway.errors import GatewayError, json_reply
from routing_admin.gateway.fields import Object
from routing_admin.gateway.gemini.events import GeminiChunks
from routing_admin.gateway.gemini.fields import read_fields
from routing_admin.gateway.gemini.parsing import CANDIDATES, needs_thread, parse
from routing_admin.gateway.gemini.rendering import (
    blocked_json,
    error_json,
    merge_responses,
    response_json,
    shows_thoughts,
)
from routing_admin.gateway.http import HttpCall, HttpReply, build_call, build_response
from routing_admin.gateway.keep_alive import BLANK
from routing_admin.gateway.token_counts import TokenCounting, count_reply

JSON = "application/json"
ROOT = "/v1beta/models/"
WHOLE, STREAMED, COUNTED = "generateContent", "streamGenerateContent", "countTokens"


def read_call(call: HttpCall) -> Object:
    """Return the body, with the model and the streaming flag that the path contains.

    The body of a countTokens call may contain the whole request in `generateContentRequest`.
    """
    body = read_fields(read_object(call), "")
    if (inner := body.get("generateContentRequest")) is not None:
        body = read_fields(inner, "generateContentRequest")
    name, _, verb = call.path.removeprefix(ROOT).rpartition(":")
    # Values from the path override body fields with these names.
    return {**body, "model": name, "stream": verb == STREAMED}


def _write_answer(answer: Answer, call: ChatCall, name: str, origin: str) -> HttpReply:
    return json_reply(response_json(answer, call, name, origin))


def _write_events(call: ChatCall, name: str, origin: str, *, as_list: bool) -> GeminiChunks:
    return GeminiChunks(
        model=name, origin=origin, shows_thoughts=shows_thoughts(call.chat), as_list=as_list, choice=call.choice
    )


def _write_blocked(error: GatewayError, *, stream_type: str) -> tuple[str, bytes]:
    data = orjson.dumps(blocked_json(error))
    framed = {SSE: b"data: %b\r\n\r\n" % data, JSON: b"[%b]" % data}
    return (stream_type or JSON), framed.get(stream_type, data)


def _api(verb: str, *, as_list: bool = False) -> ChatApi:
    events = partial(_write_events, as_list=as_list)
    stream_type = JSON if as_list else SSE
    blocked = partial(_write_blocked, stream_type=stream_type if verb == STREAMED else "")
    path = f"{ROOT}{{name}}:{verb}"
    return ChatApi(
        path,
        parse,
        needs_thread,
        _write_answer,
        events,
        error_json,
        read=read_call,
        stream_type=stream_type,
        keep_alive=BLANK,
        blocked=blocked,
        count_field=CANDIDATES,
        merge=merge_responses,
        enclose=enclose_list if as_list else None,
    )


GENERATE, STREAM, LIST = _api(WHOLE), _api(STREAMED), _api(STREAMED, as_list=True)
COUNTING = TokenCounting(f"{ROOT}{{name}}:{COUNTED}", GENERATE, lambda tokens: {"totalTokens": tokens})
VERBS: Mapping[str, ChatApi] = MappingProxyType({WHOLE: GENERATE, STREAMED: LIST})


def find_gemini(path: str, query: str) -> ChatApi | None:
    """Return the Gemini API that serves `path`, which contains the model's name, or None if there is none."""
    if not path.startswith(ROOT):
        return None
    api = VERBS.get(path.rpartition(":")[2])
    return STREAM if api is LIST and "sse" in parse_qs(query).get("alt", ()) else api


@csrf_exempt
async def generate(request: HttpRequest, name: str) -> HttpResponseBase:
    """Serve the API as a Django view, for servers that run Django without our ASGI application."""
    api = find_gemini(request.path, request.META.get("QUERY_STRING", ""))
    assert api is not None, name  # noqa: S101 - the URLconf leads here for these addresses alone
    return build_response(await complete(api, build_call(request)))


@csrf_exempt
def count_tokens(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return the estimated number of a request's tokens."""
    return build_response(count_reply(COUNTING, build_call(request)))


METHODS = ("generateContent", "countTokens")
MODELS = "models/"
MAX_PAGE = 1000
DIGITS = re.compile(r"[0-9]{1,9}")


def write_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an entry of OpenAI's model list to Gemini's format."""
    reads, writes = (", ".join(model["capabilities"][side]) for side in ("input", "output"))
    return {
        "name": MODELS + model["id"],
        "version": "1",
        "displayName": model["id"],
        "description": f"{model['owned_by']}: {reads} → {writes}",
        "supportedGenerationMethods": list(METHODS),
    }


def write_page(models: list[dict[str, Any]], size: str, token: str) -> dict[str, Any]:
    """Return a page of models; the page token is the offset of the next page."""
    # For an invalid token, return the first page instead of an error.
    start = int(token) if DIGITS.fullmatch(token) else 0
    end = start + min(int(size) if DIGITS.fullmatch(size) and int(size) else MAX_PAGE, MAX_PAGE)
    page = {"models": [write_model(model) for model in models[start:end]]}
    return {**page, "nextPageToken": str(end)} if end < len(models) else page
