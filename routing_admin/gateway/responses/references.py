"""Replace `item_reference` and `previous_response_id` in the input by the stored items that they refer to."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from django.conf import settings

from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import value_class
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import Object, require_text
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.threads import run_in_thread
from routing_admin.request_log.kept_answers import KeptTooLargeError, kept_answers

T = TypeVar("T")
REFERENCE, PREVIOUS = "item_reference", "previous_response_id"
ITEM_ID = re.compile(r"[a-z]{2,4}_(?P<key>(?P<second>[0-9a-f]{8})[0-9a-f]{16})[0-9a-f]{2,4}")
"""Pattern of the item ids that `ResponseHead.item_id` makes.

An id is made of the answer's key, which starts with the answer's creation time, and the item's index.
"""
ANSWER_ID = re.compile(r"resp_(?P<key>(?P<second>[0-9a-f]{8})[0-9a-f]{16})")
VENDORS_ID = re.compile(r"[A-Za-z]{1,20}_[\w-]{1,230}", re.ASCII)
"""Pattern of an id that OpenAI gave to an item, such as `ws_…` for a web search.

The item is stored under OpenAI's own id, because OpenAI requires that id.
"""
RETRY_DELAYS = (0.1, 0.2, 0.4, 0.8)
"""Seconds to wait between attempts to find an answer that another process is still writing."""
MAX_ANSWER = 900
"""Maximum duration of an answer in seconds."""

UNKNOWN = translatable(
    "%(param)s refers to an answer that is not kept for this agent, or no longer. Set store: false in the client, so "
    "that it sends whole items."
)
NOT_KEPT = translatable(
    "previous_response_id refers to an answer that is not kept for this agent, or no longer. Send the whole "
    "conversation as input, with store: false."
)
DUPLICATE_ID = translatable("%(param)s refers to the same item as an earlier place. Refer to each item once.")
TOO_LARGE = translatable(
    "The answers that %(param)s refers to have more than %(limit)s bytes of JSON (ROUTING_ADMIN_MAX_JSON_BYTES)."
)


@value_class
class Earlier:
    """The stored conversation that a request continues; its items replace `previous_response_id`.

    `id` is its last answer's id, `count` the number of its items, and `before` contains its answers' keys.
    """

    id: str
    before: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class _Reference:
    index: int
    id: str
    key: str = ""


async def resolve_references(call: HttpCall, agent: str, body: Object) -> Object:
    """Return the body with all references replaced by items; raise `BadRequestError` if an item is missing."""
    items, previous = body.get("input"), body.get(PREVIOUS)
    if previous in (None, False) or not settings.KEEP_ANSWERS:
        resolved = await _resolve_items(call, agent, items) if isinstance(items, list) else items
        return body if resolved is items else {**body, "input": resolved}
    # A plain string is the short form of one user message.
    new_items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    if not isinstance(new_items, list) or not new_items:
        return {**body, PREVIOUS: None}  # The parser refuses an empty input.
    keys, earlier = await _find_earlier(call, agent, require_text(body, PREVIOUS, ""))
    known_ids = {item["id"] for item in earlier if isinstance(item.get("id"), str)}
    new_items = await _resolve_items(call, agent, new_items, known_ids)
    return {**body, "input": [*earlier, *new_items], PREVIOUS: Earlier(str(previous), tuple(keys), len(earlier))}


async def _find_earlier(call: HttpCall, agent: str, identity: str) -> tuple[list[str], list[Any]]:
    match = ANSWER_ID.fullmatch(identity)
    for delay in (*RETRY_DELAYS, None) if match and _is_recent(match["second"]) else ():
        key, max_bytes = str(match and match["key"]), settings.MAX_JSON_BYTES
        conversation = await _look_up(call, partial(kept_answers().find_conversation, agent, key, max_bytes), PREVIOUS)
        if conversation is not None:
            return conversation
        if delay is not None:
            await asyncio.sleep(delay)
    raise BadRequestError(NOT_KEPT, PREVIOUS, "previous_response_not_found")


async def _look_up(call: HttpCall, work: Callable[[], T], param: str) -> T:
    try:
        return await run_in_thread(call, work)
    except KeptTooLargeError:
        values = {"param": param, "limit": str(settings.MAX_JSON_BYTES)}
        raise BadRequestError(Translatable(TOO_LARGE.template, values), param, "request_too_large", 413) from None


async def _resolve_items(call: HttpCall, agent: str, items: list[Any], known_ids: Collection[str] = ()) -> list[Any]:
    # The ids in `known_ids` belong to items of the earlier conversation, which the input already contains, so these
    # cannot be referenced again.
    references = list(_list_references(items, known_ids))
    if not references:
        return items
    stored: dict[str, Object] = {}
    for delay in (*RETRY_DELAYS, None):
        keys = {reference.key for reference in references if reference.id not in stored}
        look_up = partial(kept_answers().find, agent, keys, settings.MAX_JSON_BYTES)
        answers = await _look_up(call, look_up, "input")
        stored |= {item["id"]: item for answer_items in answers.values() for item in answer_items}
        missing = next((reference for reference in references if reference.id not in stored), None)
        if missing is None:
            break
        if delay is None or missing.key in answers:
            raise _refusal(UNKNOWN, missing.index)
        await asyncio.sleep(delay)
    resolved = list(items)
    for reference in references:
        resolved[reference.index] = stored[reference.id]
    return resolved


def _list_references(items: list[Any], known_ids: Collection[str]) -> Iterator[_Reference]:
    # OpenAI allows item references without a type.
    seen = set(known_ids)
    for index, item in enumerate(items):
        if not isinstance(item, dict) or item.get("type", REFERENCE) not in (REFERENCE, None):
            continue
        identity = item.get("id")
        if item.get("type") != REFERENCE and (not identity or item.keys() - {"id", "type"}):
            continue
        if not isinstance(identity, str) or not settings.KEEP_ANSWERS:
            raise _refusal(UNKNOWN, index)
        if match := ITEM_ID.fullmatch(identity):
            key = match["key"] if _is_recent(match["second"]) else ""
        else:
            key = identity if VENDORS_ID.fullmatch(identity) else ""
        if not key:
            raise _refusal(UNKNOWN, index)
        if identity in seen:
            raise _refusal(DUPLICATE_ID, index)
        seen.add(identity)
        yield _Reference(index, identity, key)


def _is_recent(second: str) -> bool:
    # The key contains the answer's creation time, so an expired reference needs no query.
    lifetime: int = settings.KEEP_ANSWERS
    return time.time() - int(second, 16) <= lifetime + MAX_ANSWER


def _refusal(sentence: Translatable, index: int) -> BadRequestError:
    param = f"input[{index}].id"
    return BadRequestError(Translatable(sentence.template, {"param": param}), param, "item_not_found")
