"""Record where and when each session was last used. Updates are collected in memory, so that no page waits for a write.

Django's session store contains the sessions and their users. The rows written here identify a session by a digest of
its key. Pages infer the browser and operating system from the stored user agent.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import DatabaseError, InterfaceError, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from capabilities.runtime import owned
from routing_admin.models import SessionSighting
from routing_admin.platform.auth.addresses import client_address

log = logging.getLogger(__name__)

WRITE_INTERVAL = timedelta(minutes=1)
"""A session's use is recorded at most once in this period."""
MAX_AGENT = 300
"""Maximum length of a stored user agent; longer ones are truncated."""


@dataclass(frozen=True, slots=True)
class SessionUse:
    user_agent: str
    address: str
    at: datetime


def digest_session(key: str) -> str:
    """Return the digest that identifies a session; it cannot be used to sign in."""
    return hashlib.sha256(
        f"routing_admin.session:{key}".encode()
    ).hexdigest()  # No salt is needed, because a key's 165 random bits cannot be guessed.


def find_sessions(user_id: int) -> Iterator[tuple[str, Session]]:
    """Yield a user's active sessions with their digests; this reads the sessions of all users."""
    for row in Session.objects.filter(expire_date__gt=timezone.now()):
        if row.get_decoded().get(SESSION_KEY) == str(user_id):
            yield digest_session(row.session_key), row


class SessionActivity:
    """Session activity that this process has not written yet."""

    def __init__(self) -> None:
        self._noted: dict[str, SessionUse] = {}
        self._last: dict[str, datetime] = {}
        self._writing = threading.Lock()

    def note(self, key: str, use: SessionUse) -> None:
        digest = digest_session(key)
        last = self._last.get(digest)
        if last is None or use.at - last > WRITE_INTERVAL:
            self._noted[digest] = use
            # Drop entries that are older than the interval and no longer needed.
            self._last = {known_digest: at for known_digest, at in self._last.items() if use.at - at <= WRITE_INTERVAL}
            self._last[digest] = use.at

    def waiting(self) -> dict[str, SessionUse]:
        return dict(self._noted)

    def write(self) -> bool:
        """Write the recorded activity in one transaction; if the database fails, keep the activity and return False."""
        with self._writing:
            noted = self.waiting()
            try:
                _update(noted)
            except (DatabaseError, InterfaceError) as error:
                log.debug("the last use of %s sessions could not be written yet: %s", len(noted), error)
                return False
            for digest, use in noted.items():
                # A newer use of the session may have replaced this entry during the write.
                if self._noted.get(digest) is use:
                    del self._noted[digest]
            return True


def _update(noted: dict[str, SessionUse]) -> None:
    if not noted:
        return
    with transaction.atomic():
        for digest, use in noted.items():
            fields = {"user_agent": use.user_agent, "address": use.address, "last_seen": use.at}
            first = {**fields, "first_seen": use.at}
            SessionSighting.objects.update_or_create(digest=digest, defaults=fields, create_defaults=first)


session_activity = owned(SessionActivity)


class SessionActivityMiddleware:
    """Record the session activity of signed-in users.

    This middleware wraps the session middleware, because the key of a new session is known only after it is saved.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = getattr(request, "session", None)
        if session is not None and session.accessed and session.session_key and SESSION_KEY in session:
            agent = request.headers.get("user-agent", "")[:MAX_AGENT]
            address = client_address(request.META, settings.TRUSTED_PROXIES)[:64]
            session_activity().note(session.session_key, SessionUse(agent, address, timezone.now()))
        return response


PROGRAMS = (
    ("MicroMessenger", "WeChat"),
    ("DingTalk", "DingTalk"),
    ("Lark", "Feishu"),
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("HeadlessChrome", "Chrome"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
    ("python", "Python"),
)
"""Pairs: a text in user agents, and the program that it indicates. The first match counts, because most user agents
also name other programs.
"""

SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("HarmonyOS", "HarmonyOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def program_and_system(user_agent: str) -> tuple[str, str]:
    program = next((name for product, name in PROGRAMS if product in user_agent), "")
    return program, next((name for product, name in SYSTEMS if product in user_agent), "")
