"""Who makes a call of the data plane: by what is in memory, else by rows, for which so many may wait at a time."""

from __future__ import annotations

import asyncio
from functools import partial

from capabilities.access import Principal
from capabilities.runtime import owned
from routing_admin.gateway.admission import admit_caller, admit_known_caller
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.key_cache import digest_of
from routing_admin.gateway.threads import run_in_thread
from routing_admin.platform.server.fair_semaphore import Slot, lookups

_under_way = owned(dict[bytes, asyncio.Event])
"""The keys that are looked up just now, each set once that is done."""


async def find_caller(call: HttpCall, path: str) -> Principal:
    """Who makes the call at `path`, as the table of permissions writes it.

    Raises `GatewayError` for whoever may not, `OverloadedError` where too many wait to be looked up.
    """
    known = admit_known_caller(call.method, call.query, call.headers, path)
    return known if known is not None else await look_up_caller(call, path)


async def look_up_caller(call: HttpCall, path: str) -> Principal:
    """The same by rows; who comes while a key is looked up waits for that, and needs no place where it was good."""
    digest = digest_of(call.headers)
    if (under_way := _under_way().get(digest)) is not None:
        await under_way.wait()
        known = admit_known_caller(call.method, call.query, call.headers, path)
        if known is not None:
            return known
    place = Slot(lookups())
    await place.enter(call.address)
    done = _under_way()[digest] = asyncio.Event()
    try:
        return await run_in_thread(call, partial(admit_caller, call.method, call.query, call.headers, path))
    finally:
        done.set()
        if _under_way().get(digest) is done:
            del _under_way()[digest]
        place.leave()
