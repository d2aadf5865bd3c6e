"""A hint to other processes that something has changed: they look at once, instead of within a second."""

from __future__ import annotations

from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.redis.news import Fields, News, news

TOPIC = "configuration"
MOST = 16


def notify_change() -> None:
    """Says that the stamp has moved; nothing where there is no Redis."""
    hints().tell(TOPIC, "", lambda: {"stamp": str(snapshot.newest().stamp())})


def follow_changes(source: News) -> News:
    """Looks whenever another process says that something has changed: what the rows say decides."""

    def look(fields: Fields, age: float) -> None:
        if not source.is_own(fields):
            renew_connections()
            snapshot.look()

    source.follow(TOPIC, MOST, look)
    return source


hints = owned(lambda: follow_changes(news()))
