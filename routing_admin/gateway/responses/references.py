"""`item_reference`: what a later call refers to by its id is put into the input, where the agent's answer had it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from capabilities.core.worded import Worded, worded
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.threads import run_in_thread
from routing_admin.request_log.kept_answers import KeptTooLargeError, kept_answers

REFERENCE = "item_reference"
ITEM_ID = re.compile(r"[a-z]{2,4}_(?P<key>(?P<second>[0-9a-f]{8})[0-9a-f]{16})[0-9a-f]{2,4}")
"""`ResponseHead.item_id`: the answer's key, which begins with the second it was made in, and the item's place."""
RETRY_DELAYS = (0.1, 0.2, 0.4, 0.8)
"""Seconds until an answer that another process has just given is written."""
LONGEST_ANSWER = 900
"""Seconds after which an answer has ended that was begun."""

UNKNOWN = worded(
    "%(param)s refers to an answer that is not kept for this agent, or no longer. Set store: false in the client, so "
    "that it sends whole items."
)
TWICE = worded("%(param)s refers to the same item as an earlier place. Refer to each item once.")
TOO_LARGE = worded(
    "The answers that input refers to have more than %(limit)s bytes of JSON (ROUTING_ADMIN_MAX_JSON_BYTES)."
)


@dataclass(frozen=True, slots=True)
class _Reference:
    place: int
    id: str
    key: str = ""


async def resolve_references(call: HttpCall, agent: str, body: Object) -> Object:
    """Return the body with the items that its input refers to. Raises `BadRequestError` for one that is not there."""
    items = body.get("input")
    if not isinstance(items, list):
        return body
    references = list(_list_references(items))
    if not references:
        return body
    found: dict[str, Object] = {}
    for delay in (*RETRY_DELAYS, None):
        keys = {each.key for each in references if each.id not in found}
        try:
            answers = await run_in_thread(call, partial(kept_answers.find, agent, keys, settings.MAX_JSON_BYTES))
        except KeptTooLargeError:
            sentence = Worded(TOO_LARGE.template, {"limit": str(settings.MAX_JSON_BYTES)})
            raise BadRequestError(sentence, "input", "request_too_large", 413) from None
        found |= {item["id"]: item for kept in answers.values() for item in kept}
        missing = next((each for each in references if each.id not in found), None)
        if missing is None:
            break
        if delay is None or missing.key in answers:
            raise _refusal(UNKNOWN, missing.place)
        await asyncio.sleep(delay)
    resolved = list(items)
    for each in references:
        resolved[each.place] = found[each.id]
    return {**body, "input": resolved}


def _list_references(items: list[Any]) -> Iterator[_Reference]:
    """The references among items, also those that say no type, as OpenAI allows it."""
    seen = set()
    for place, item in enumerate(items):
        if not isinstance(item, dict) or item.get("type", REFERENCE) not in (REFERENCE, None):
            continue
        identity = item.get("id")
        if item.get("type") != REFERENCE and (not identity or item.keys() - {"id", "type"}):
            continue
        fitting = ITEM_ID.fullmatch(identity) if isinstance(identity, str) else None
        age = time.time() - int(fitting["second"], 16) if fitting else None
        if fitting is None or age is None or age > settings.KEEP_ANSWERS + LONGEST_ANSWER:
            raise _refusal(UNKNOWN, place)
        if identity in seen:
            raise _refusal(TWICE, place)
        seen.add(identity)
        yield _Reference(place, str(identity), fitting["key"])


def _refusal(sentence: Worded, place: int) -> BadRequestError:
    param = f"input[{place}].id"
    return BadRequestError(Worded(sentence.template, {"param": param}), param, "item_not_found")
