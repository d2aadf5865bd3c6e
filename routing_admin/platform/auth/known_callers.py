"""Check, before a request's body is read, whether a key, a token or a session authenticates the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from capabilities.access import Principal, authenticate, read_key
from routing_admin.platform.auth.admin_tokens import AdminCaller, authenticate_token
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable

UNKNOWN_BYTES = 64 * 1024
"""Body limit in bytes for unauthenticated callers. It is enough for every form that they may send, and for calls that
will be rejected anyway.
"""


async def is_known_caller(headers: Mapping[str, str]) -> bool:
    """Return whether the headers (with lower-case names) authenticate the caller; database queries run in a thread."""
    with lock_timeout(WAIT_SECONDS):
        return await asyncio.to_thread(_is_known, headers)


def _is_known(headers: Mapping[str, str]) -> bool:
    with borrowed_connections():
        try:
            return _has_good_key(headers) if read_key(headers) else _is_signed_in(headers)
        except Exception as error:
            # During a database outage, treat every caller as authenticated.
            if is_unavailable(error):
                return True
            raise


def _has_good_key(headers: Mapping[str, str]) -> bool:
    return isinstance(authenticate(headers), Principal) or isinstance(authenticate_token(headers), AdminCaller)


def _is_signed_in(headers: Mapping[str, str]) -> bool:
    key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    request = HttpRequest()
    # Without a session cookie the key is empty, which results in an empty session.
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(request).is_authenticated
