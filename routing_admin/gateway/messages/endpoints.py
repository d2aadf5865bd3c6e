"""POST /v1/messages and /v1/messages/count_tokens: Anthropic's words."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from artifacts.storage.content import RowStore
from capabilities.core.delivery.token_estimates import estimate_chat
from capabilities.core.permissions import methods_of_call
from capabilities.core.wire import Answer
from capabilities.fair_slots import OverloadedError, heavy_work
from capabilities.json_bodies import is_quick
from routing_admin.configuration import snapshot
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.route_headers import header_value
from routing_admin.dispatch.token_count import count_tokens as count_of_first
from routing_admin.dispatch.token_count import first_candidate
from routing_admin.dispatch.turns import turn_memory
from routing_admin.gateway.admission import admit_caller, check_method, enter_limited, error_of_fault
from routing_admin.gateway.body import is_packed, read_object
from routing_admin.gateway.calls import complete, resolve_model
from routing_admin.gateway.door import ChatCall, Door
from routing_admin.gateway.errors import GatewayError, json_reply, reply_of
from routing_admin.gateway.http import HttpCall, HttpReply, call_of, response_of_reply
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.parsing import needs_thread, parse
from routing_admin.gateway.messages.rendering import error_json, message_json
from routing_admin.gateway.messages.thinking_blocks import shows_thinking
from routing_admin.gateway.streaming import later_error

COUNT = "/v1/messages/count_tokens"
ESTIMATE = "x-routing-estimate"
"""The header that says that a number of tokens is no provider's count but our estimate."""


def _write_answer(answer: Answer, call: ChatCall, name: str, origin: str) -> HttpReply:
    return json_reply(message_json(answer, call, name, origin))


def _write_events(call: ChatCall, name: str, origin: str) -> MessageEvents:
    return MessageEvents(name, origin, thinks=shows_thinking(call.chat))


ID = "request-id"
"""Where Anthropic's clients look for the id of a call."""
MESSAGES = Door("/v1/messages", parse, needs_thread, _write_answer, _write_events, error_json, ID)


@csrf_exempt
async def messages(request: HttpRequest) -> HttpResponseBase:
    """The view, for servers that run Django alone."""
    return response_of_reply(await complete(MESSAGES, call_of(request)))


@csrf_exempt
def count_tokens(request: HttpRequest) -> HttpResponseBase:
    """How many tokens a request is likely to take."""
    return response_of_reply(count_reply(call_of(request)))


def count_reply(call: HttpCall) -> HttpReply:
    """The count of who would be asked first, else an estimate, as `x-routing-estimate` says; errors included."""
    reply = _count(call)
    reply.headers.update({"x-request-id": call.request_id, ID: call.request_id})
    return reply


def _count(call: HttpCall) -> HttpReply:
    refuse = partial(reply_of, request_id=call.request_id, write=error_json)
    hold = None
    try:
        check_method(call.method, call.path, methods_of_call(COUNT))
        principal = admit_caller(call.method, call.query, call.headers, COUNT)
        hold = enter_limited(principal, len(call.body.data))
        is_large = is_packed(call) or not is_quick(call.body.data)
        with heavy_work.hold(principal.key_owner) if is_large else nullcontext():
            parsed, state = parse(read_object(call), RowStore(principal.agent).part), snapshot.current()
        target = resolve_model(state, parsed.model, parsed.task_type, principal.rights)
        planned = plan_request(
            state,
            target.route,
            turn_memory.complete(principal.agent, parsed.chat),
            matched=target.matched,
            language=parsed.language,
            agent=principal.agent,
            service=target.service,
            direct=target.direct,
        )
        counted = count_of_first(planned)
    except GatewayError as error:
        return refuse(error)
    except OverloadedError as error:
        return refuse(later_error(error))
    except Exception as error:  # the last line of defence of a machine's plane: never an HTML page
        return refuse(error_of_fault(error))
    finally:
        if hold is not None:
            hold.close()
    first = first_candidate(planned)
    told = {"x-routing-provider": first.provider, "x-routing-model": first.model} if first else {}
    if counted is None:
        told[ESTIMATE] = "true"
        counted = estimate_chat(parsed.chat, first.model if first else parsed.model)
    reply = json_reply({"input_tokens": counted})
    reply.headers.update({name: header_value(value) for name, value in told.items()})
    return reply
