"""Who makes a call of the data plane: by what is in memory, else by rows, for which so many may wait at a time."""

from __future__ import annotations

from functools import partial

from capabilities.access import Principal
from routing_admin.gateway.admission import admit_caller, admit_known_caller
from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.threads import run_in_thread
from routing_admin.server.places import CallPlace, lookups


async def find_caller(call: HttpCall, path: str) -> Principal:
    """Who makes the call at `path`, as the table of permissions writes it.

    Raises `GatewayError` for whoever may not, `OverloadedError` where too many wait to be looked up.
    """
    known = admit_known_caller(call.method, call.query, call.headers, path)
    return known if known is not None else await look_up_caller(call, path)


async def look_up_caller(call: HttpCall, path: str) -> Principal:
    """The same by rows."""
    place = CallPlace(lookups())
    await place.enter(call.address)
    try:
        return await run_in_thread(call, partial(admit_caller, call.method, call.query, call.headers, path))
    finally:
        place.leave()
