"""Authenticate calls to the data plane, from the key cache or with a bounded number of concurrent database look-ups."""

from __future__ import annotations

import asyncio
from functools import partial

from capabilities.access import Principal
from capabilities.runtime import owned
from routing_admin.gateway.admission import admit_caller, admit_known_caller
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.key_cache import digest_credentials
from routing_admin.gateway.threads import run_in_thread
from routing_admin.platform.server.fair_semaphore import Slot, lookups

_under_way = owned(dict[bytes, asyncio.Event])
"""Maps each key that is being looked up to an event that is set when the look-up ends."""


async def find_caller(call: HttpCall, path: str) -> Principal:
    """Return the agent that calls `path`.

    Raise `GatewayError` if the key is invalid or lacks the scope, `OverloadedError` if too many look-ups are queued.
    """
    principal = admit_known_caller(call.method, call.query, call.headers, path)
    return principal if principal is not None else await look_up_caller(call, path)


async def look_up_caller(call: HttpCall, path: str) -> Principal:
    """Return the agent from the database; concurrent calls with the same key share one look-up.

    Raise errors like `find_caller`.
    """
    digest, under_way = digest_credentials(call.headers), _under_way()
    # On a busy server the cache may be outdated again when a look-up ends. Then the first waiting call looks the key up
    # once more, and the other calls wait again. If the key is still not cached after that, it is invalid, or its agent
    # acts for another agent.
    for _ in range(2):
        if (look_up := under_way.get(digest)) is None:
            break
        await look_up.wait()
        principal = admit_known_caller(call.method, call.query, call.headers, path)
        if principal is not None:
            return principal
    slot = Slot(lookups())
    await slot.enter(call.address)
    done = under_way[digest] = asyncio.Event()
    try:
        return await run_in_thread(call, partial(admit_caller, call.method, call.query, call.headers, path))
    finally:
        done.set()
        # A later look-up of the same key may have replaced the event.
        if under_way.get(digest) is done:
            del under_way[digest]
        slot.leave()
