"""The ledger in rows of the request log's database; each exchange is one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from capabilities.core.services.agent_limits import Meter
from capabilities.core.services.agents import NO_LABELS, LabelKind, Labels
from capabilities.core.services.limit_holders import LimitHolder, label_holder, user_holder
from capabilities.runtime import owned
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.limits.ledger import Booking, Order, book
from routing_admin.models import LimitShare, LimitWindow
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import LOGS, renew_connections

WAIT_SECONDS = 0.2
"""How long a call waits for the ledger, and the ledger for whoever locks it."""
LEASE = timedelta(seconds=60)
"""How long a process that says nothing more holds its shares."""
WANTED = timedelta(seconds=2)
"""How long it counts that a process asked in vain."""
LATER = timedelta(hours=1)
"""How long rows of a window stay once it is over: its last calls may still be under way."""
SWEEP = 200


@dataclass(frozen=True, slots=True)
class RowLedger:
    """The ledger of an installation without anything faster."""

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        """Books every order, all or none. Raises what the database raises."""
        renew_connections()
        with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
            return [_exchange(process, order, now) for order in orders]

    def publish(self) -> None:
        """Nothing: what is said stands in the rows."""

    def leave(self, process: str) -> None:
        """Takes back what the process holds and had not said to be committed. Raises what the database raises."""
        now = datetime.now(UTC)
        with transaction.atomic(using=LOGS):
            LimitShare.objects.filter(process=process).update(held_until=now)
            for window in LimitWindow.objects.select_for_update().filter(shares__process=process):
                LimitWindow.objects.filter(pk=window.pk).update(drawn=F("drawn") - take_back(window, now))


def _exchange(process: str, order: Order, now: datetime) -> Booking:
    window = find_window(order, now)
    drawn = window.drawn - take_back(window, now)
    share = LimitShare.objects.filter(limit_window=window, process=process).first()
    booking = book(drawn, share.granted if share else None, order)
    in_vain = bool(order.want) and not booking.grant
    wanted = window.wanted_at is not None and now - window.wanted_at < WANTED and window.wanted_by != process
    if booking.drawn != window.drawn or in_vain:
        changes = {"wanted_at": now, "wanted_by": process} if in_vain and not wanted else {}
        LimitWindow.objects.filter(pk=window.pk).update(drawn=booking.drawn, **changes)
    held = {"granted": booking.granted, "committed": order.committed, "held_until": now + LEASE}
    LimitShare.objects.update_or_create(limit_window=window, process=process, defaults=held)
    return Booking(booking.granted, booking.drawn, booking.grant, wanted)


def find_window(order: Order, now: datetime) -> LimitWindow:
    """The row of an order's window, made when it is new, locked until the transaction ends."""
    place = {"holder": order.holder, "meter": order.meter.value, "window": order.window.name}
    _, made = LimitWindow.objects.get_or_create(**place, defaults={"ends_at": order.window.ends_at})
    if made:
        sweep(now)
    return LimitWindow.objects.select_for_update().get(**place)


def take_back(window: LimitWindow, now: datetime) -> int:
    """What processes held whose lease is over: what they did not commit, and of the moment everything."""
    gone = list(LimitShare.objects.filter(limit_window=window, held_until__lte=now))
    if gone:
        LimitShare.objects.filter(pk__in=[each.pk for each in gone]).delete()
    return sum(each.granted - (each.committed if window.ends_at else 0) for each in gone)


def sweep(now: datetime) -> None:
    """Removes rows of windows that are over, some at a time. Raises what the database raises."""
    over = list(LimitWindow.objects.filter(ends_at__lte=now - LATER).values_list("pk", flat=True)[:SWEEP])
    if over:
        LimitWindow.objects.filter(pk__in=over).delete()


def list_used(holders: Iterable[str], now: datetime) -> Mapping[tuple[str, Meter], int]:
    """What each of the holders used or reserved in the windows of now, by meter; what processes hold free is not."""
    rows = LimitWindow.objects.filter(Q(ends_at__gt=now) | Q(ends_at=None), holder__in=list(holders))
    free = Sum(F("shares__granted") - F("shares__committed"), default=0)
    under_way = Sum("shares__committed", filter=Q(shares__held_until__gt=now), default=0)
    sums = rows.annotate(free=free, under_way=under_way)
    return {
        (holder, Meter(meter)): max(0, drawn - unused) if ends_at else committed
        for holder, meter, ends_at, drawn, unused, committed in sums.values_list(
            "holder", "meter", "ends_at", "drawn", "free", "under_way"
        )
    }


# Whose budgets hold for a call by its labels: its team's, its project's, and its end user's own of the agent's.

MAX_USERS = 10_000
"""So many end users of an agent are counted each for themselves in a day; those who come later share one budget."""
OTHERS = "(other)"


class CountedUsers:
    """The end users that this process counts today; what callers make up must not fill memory and ledger."""

    def __init__(self) -> None:
        self._day = date.min
        self._agents: dict[str, set[str]] = {}

    def name_of(self, agent: str, user: str) -> str:
        """Under which name an end user is counted."""
        today = timezone.localdate()
        if today != self._day:
            self._day, self._agents = today, {}
        known = self._agents.setdefault(agent, set())
        if user not in known:
            if len(known) >= MAX_USERS:
                return OTHERS
            known.add(user)
        return user


counted_users = owned(CountedUsers)


def list_label_holders(configuration: Configuration, agent: str, labels: Labels) -> tuple[LimitHolder, ...]:
    """Whose limits hold for a call with these labels by a key of that agent, beside the agent's and the key's."""
    if labels is NO_LABELS or not configuration.label_budgets:
        return ()
    return tuple(_find_holders(configuration, agent, labels))


def _find_holders(configuration: Configuration, agent: str, labels: Labels) -> Iterator[LimitHolder]:
    budgets = configuration.limits_by_label
    for kind in (LabelKind.TEAM, LabelKind.PROJECT):
        name = labels.of(kind)
        holder = label_holder(kind, name, budgets.get(f"{kind}:{name}")) if name else None
        if holder is not None:
            yield holder
    limits = budgets.get(f"{LabelKind.USER}:{agent}") if labels.user else None
    if limits is not None:
        found = user_holder(agent, counted_users().name_of(agent, labels.user), limits)
        if found is not None:
            yield found
