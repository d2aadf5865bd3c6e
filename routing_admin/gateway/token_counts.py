"""Estimate a call's tokens, for every API that has an endpoint for counting tokens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync

from artifacts.storage.content import RowStore
from capabilities.core.delivery.tokens import estimate_chat
from capabilities.core.permissions import call_methods
from capabilities.core.values import value_class
from capabilities.fair_slots import OverloadedError, heavy_work
from capabilities.json_bodies import is_quick
from routing_admin.configuration import snapshot
from routing_admin.dispatch.estimates import count_tokens, first_candidate
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.reasoning_cache import reasoning_cache
from routing_admin.dispatch.recorded import header_value
from routing_admin.gateway.admission import admit_caller, check_method, enter_limited, fault_error
from routing_admin.gateway.body import is_packed
from routing_admin.gateway.calls import resolve_model
from routing_admin.gateway.chat_api import ChatApi
from routing_admin.gateway.errors import GatewayError, error_reply, json_reply
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.streaming import retriable_error

ESTIMATE = "x-routing-estimate"
"""Response header that marks a token count as our estimate instead of a provider's count."""


@value_class
class TokenCounting:
    """An API's endpoint for counting tokens: its path, the API whose requests it accepts, and its response format."""

    path: str
    api: ChatApi
    write: Callable[[int], dict[str, Any]]


def count_reply(counting: TokenCounting, call: HttpCall) -> HttpReply:
    """Return the first candidate's count, or an estimate marked by `x-routing-estimate`, or the error's reply."""
    reply = _count(counting, call)
    reply.headers["x-request-id"] = call.request_id
    if counting.api.id_header:
        reply.headers[counting.api.id_header] = call.request_id
    return reply


def _count(counting: TokenCounting, call: HttpCall) -> HttpReply:
    api, path = counting.api, counting.path
    refuse = partial(error_reply, request_id=call.request_id, write=api.error)
    reservation = None
    try:
        check_method(call.method, call.path, call_methods(path))
        principal = admit_caller(call.method, call.query, call.headers, path)
        reservation = enter_limited(principal, len(call.body.data))
        is_large = is_packed(call) or not is_quick(call.body.data)
        with heavy_work().hold(principal.key_owner) if is_large else nullcontext():
            body = api.read(call)
            if api.resolve is not None:
                body = async_to_sync(api.resolve)(call, principal.agent, body)
            parsed, state = api.parse(body, RowStore(principal.agent).part), snapshot.current()
        target = resolve_model(state, parsed.model, parsed.task_type, principal.rights)
        planned = plan_request(
            state,
            target.route,
            reasoning_cache().complete(principal.agent, parsed.chat),
            matched=target.matched,
            language=parsed.language,
            agent=principal.agent,
            service=target.service,
            direct=target.direct,
        )
        counted = count_tokens(planned)
    except GatewayError as error:
        return refuse(error)
    except OverloadedError as error:
        return refuse(retriable_error(error))
    except Exception as error:  # API clients must never receive an HTML error page.
        return refuse(fault_error(error))
    finally:
        if reservation is not None:
            reservation.close()
    first = first_candidate(planned)
    # Tokenizers differ, so headers name the model for which the tokens were counted.
    headers = {"x-routing-provider": first.provider, "x-routing-model": first.model} if first else {}
    if counted is None:
        headers[ESTIMATE] = "true"
        counted = estimate_chat(parsed.chat, first.model if first else parsed.model)
    reply = json_reply(counting.write(counted))
    reply.headers.update({name: header_value(value) for name, value in headers.items()})
    return reply
