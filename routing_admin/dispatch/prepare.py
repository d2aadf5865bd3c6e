"""A candidate's request, made from the canonical one. Files it gets as text are stored first, to have names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from capabilities.core.delivery.adaptation import CannotRead, PartDelivery
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.receiver import Prepared, Receiver, prepare, rename_limit
from capabilities.core.message import ChatRequest, FilePart, UnreadableError
from capabilities.core.protocols.parameters import brief_names
from routing_admin.core.fallback.chain import Call
from routing_admin.core.planning.params import list_dropped_params
from routing_admin.dispatch.plan import Keep, PlannedRequest


def prepare_for(planned: PlannedRequest, chat: ChatRequest, to: Receiver, call: Call) -> Prepared | CannotRead:
    """The request as this candidate gets it; media that it gets as words is stored first, so that they name it."""
    making = partial(
        prepare,
        to=rename_limit(to, call.limit_name),
        words=planned.words,
        stream=planned.stream,
        without_capabilities=call.without_capabilities,
    )
    prepared = making(chat)
    if isinstance(prepared, CannotRead) or planned.keep is None:
        return prepared
    nameless = [each for each in prepared.deliveries if _needs_name(each)]
    return making(_keep_files(chat, nameless, planned.keep)) if nameless else prepared


def list_dropped(chat: ChatRequest, prepared: Prepared, call: Call) -> tuple[str, ...]:
    """What a request says and this call does not: what its protocol has no place for, and what the model refused."""
    names = prepared.request.dropped_params + list_dropped_params(chat, call)
    return brief_names(names) if names else names


def _needs_name(delivery: PartDelivery) -> bool:
    """Whether words, or a part of the file, stand for bytes that nobody could fetch."""
    if delivery.file.artifact_id or delivery.file.content is None or delivery.file.unreadable:
        return False
    is_cut = delivery.delivery.loss is not None
    return delivery.delivery.outcome in (Outcome.DESCRIBED, Outcome.EXTRACTED) or is_cut


def _keep_files(chat: ChatRequest, nameless: list[PartDelivery], keep: Keep) -> ChatRequest:
    places = {(each.message, each.part): keep(each.file) for each in nameless}
    messages = tuple(
        replace(message, parts=tuple(places.get((at, place), part) for place, part in enumerate(message.parts)))
        for at, message in enumerate(chat.messages)
    )
    return replace(chat, messages=messages)


def mark_unreadable(chat: ChatRequest) -> ChatRequest:
    """The request with every file whose bytes cannot be read marked so."""
    messages = tuple(
        replace(
            message, parts=tuple(_mark_file(part) if isinstance(part, FilePart) else part for part in message.parts)
        )
        for message in chat.messages
    )
    return replace(chat, messages=messages)


def _mark_file(file: FilePart) -> FilePart:
    try:
        for _ in file.content.blob().blocks() if file.content else ():
            pass
    except UnreadableError as error:
        return replace(file, unreadable=error.reason)
    return file
