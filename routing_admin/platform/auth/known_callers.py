"""Who has shown who he is before his body is read: a good key or token, or the session of somebody signed in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from capabilities.access import Principal, authenticate, key_in
from routing_admin.platform.auth.admin_tokens import AdminCaller, authenticate_token
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable

UNKNOWN_BYTES = 64 * 1024
"""The most that anybody else may send: enough for every form that he may fill in, and every call that is refused."""


async def is_known_caller(headers: Mapping[str, str]) -> bool:
    """Whether the headers (names in lower case) are those of such a caller; so counts everybody while nobody can look.

    Queries rows, in a thread.
    """
    with lock_timeout(WAIT_SECONDS):
        return await asyncio.to_thread(_look, headers)


def _look(headers: Mapping[str, str]) -> bool:
    with borrowed_connections():
        try:
            return _has_good_key(headers) if key_in(headers) else _is_signed_in(headers)
        except Exception as error:
            if is_unavailable(error):
                return True
            raise


def _has_good_key(headers: Mapping[str, str]) -> bool:
    return isinstance(authenticate(headers), Principal) or isinstance(authenticate_token(headers), AdminCaller)


def _is_signed_in(headers: Mapping[str, str]) -> bool:
    session = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    if not session:
        return False
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session)
    return get_user(request).is_authenticated
