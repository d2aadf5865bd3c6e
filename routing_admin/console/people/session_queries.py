"""What do the pages need to know of a person's sessions? Which there are, where and when each was seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from routing_admin.models import SessionSighting
from routing_admin.platform.auth.devices import program_and_system
from routing_admin.platform.auth.session_activity import digest_of_session, session_activity, sessions_of


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session as the page shows it; `is_this` is the one that asks. Times are None while it was never seen."""

    digest: str
    is_this: bool
    program: str
    system: str
    address: str
    first_seen: datetime | None
    last_seen: datetime | None
    ends_at: datetime


def list_sessions(user_id: int, own_key: str | None) -> list[SessionLine]:
    """The person's sessions that have not ended, the one with that key first, then the last seen first. Two queries."""
    found = dict(sessions_of(user_id))
    rows = {row.digest: row for row in SessionSighting.objects.filter(digest__in=list(found))}
    noted, own = session_activity().waiting(), digest_of_session(own_key) if own_key else ""
    lines = []
    for digest, session in found.items():
        row, sight = rows.get(digest), noted.get(digest)
        newest = sight or row
        program, system = program_and_system(newest.user_agent if newest else "")
        lines.append(
            SessionLine(
                digest,
                digest == own,
                program,
                system,
                newest.address if newest else "",
                row.first_seen if row else sight.at if sight else None,
                sight.at if sight else row.last_seen if row else None,
                session.expire_date,
            )
        )
    return sorted(lines, key=lambda line: (not line.is_this, -(line.last_seen or line.ends_at).timestamp()))
