"""The ledger of limits, stored in the request log's database. Each exchange is one transaction."""

from __future__ import annotations

from collections import Counter
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
from routing_admin.core.limits.shares import Booking, Order, book
from routing_admin.limits.local_quota import LEASE_SECONDS
from routing_admin.models import LimitShare, LimitWindow
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import LOGS, renew_connections

WAIT_SECONDS = 0.2
"""Maximum time that an exchange with the ledger waits for locks, in seconds. Calls may be waiting for the exchange."""
LEASE = timedelta(seconds=LEASE_SECONDS)
"""How long a process keeps its shares of limits if it does not renew them."""
DEMAND_LIFETIME = timedelta(seconds=2)
"""How long other processes are asked to return unused amounts after an order could not be granted."""
WINDOW_RETENTION = timedelta(hours=1)
"""How long the rows of a past window are kept, because the last calls in it may still be running."""
SWEEP = 200


@dataclass(frozen=True, slots=True)
class RowLedger:
    """The ledger that all processes share.

    The number of SQL statements does not depend on the number of orders.
    """

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        """Book all orders or none of them. Database errors propagate."""
        renew_connections()
        with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
            windows = _lock_windows(orders, now)
            lapsed, held = _read_shares(windows.values(), process, now)
            bookings, changed, shares = [], [], []
            for order in orders:
                window = windows[_window_key(order)]
                booking = book(window.drawn - lapsed[window.pk], held.get(window.pk), order)
                unserved = bool(order.want) and not booking.grant
                is_wanted = window.wanted_at is not None and now - window.wanted_at < DEMAND_LIFETIME
                in_demand = is_wanted and window.wanted_by != process
                if booking.drawn != window.drawn or unserved:
                    window.drawn = booking.drawn
                    # With `in_demand`, other processes learn of this order, and return what they do not use.
                    if unserved and not in_demand:
                        window.wanted_at, window.wanted_by = now, process
                    changed.append(window)
                shares.append(
                    LimitShare(
                        limit_window=window,
                        process=process,
                        granted=booking.granted,
                        committed=order.committed,
                        held_until=now + LEASE,
                    )
                )
                bookings.append(Booking(booking.granted, booking.drawn, booking.grant, in_demand))
            _save_drawn(changed)
            LimitShare.objects.bulk_create(
                shares,
                update_conflicts=True,
                unique_fields=["limit_window", "process"],
                update_fields=["granted", "committed", "held_until"],
            )
            return bookings

    def leave(self, process: str) -> None:
        """Return to the ledger what a process has neither used nor reserved. Database errors propagate."""
        now = datetime.now(UTC)
        with transaction.atomic(using=LOGS):
            LimitShare.objects.filter(process=process).update(held_until=now)
            own_windows = LimitShare.objects.filter(process=process).values("limit_window")
            windows = list(LimitWindow.objects.select_for_update().filter(pk__in=own_windows).order_by("pk"))
            lapsed, _ = _read_shares(windows, process, now)
            for window in windows:
                window.drawn -= lapsed[window.pk]
            _save_drawn(windows)


WindowKey = tuple[str, str, str]


def _window_key(order: Order) -> WindowKey:
    return order.holder, order.meter.value, order.window.name


def _lock_windows(orders: Sequence[Order], now: datetime) -> dict[WindowKey, LimitWindow]:
    # All processes insert and lock rows in the same order, so that they cannot deadlock.
    requested = {_window_key(order): order.window.ends_at for order in sorted(orders, key=_window_key)}
    holders, meters, names = map(set, zip(*requested, strict=True))
    rows = LimitWindow.objects.filter(holder__in=holders, meter__in=meters, window__in=names)
    existing = set(rows.values_list("holder", "meter", "window"))
    new = [
        LimitWindow(holder=holder, meter=meter, window=name, ends_at=ends_at)
        for (holder, meter, name), ends_at in requested.items()
        if (holder, meter, name) not in existing
    ]
    if new:
        LimitWindow.objects.bulk_create(new, ignore_conflicts=True)
        sweep(now)
    return {(row.holder, row.meter, row.window): row for row in rows.select_for_update().order_by("pk")}


def _read_shares(windows: Iterable[LimitWindow], process: str, now: datetime) -> tuple[Counter[int], dict[int, int]]:
    by_pk = {window.pk: window for window in windows}
    lapsed, held, expired = Counter[int](), dict[int, int](), []
    shares = LimitShare.objects.filter(Q(held_until__lte=now) | Q(process=process), limit_window__in=by_pk)
    for share in shares:
        window = by_pk[share.limit_window_id]
        if share.held_until <= now:
            expired.append(share.pk)
            # Usage of an ended process stays booked, but its concurrency slots are released, because its calls ended.
            lapsed[window.pk] += share.granted - (share.committed if window.ends_at else 0)
        else:
            held[window.pk] = share.granted
    if expired:
        LimitShare.objects.filter(pk__in=expired).delete()
    return lapsed, held


def _save_drawn(windows: Sequence[LimitWindow]) -> None:
    if windows:
        # Write all rows with one short statement. The statement of `bulk_update` would grow with each row.
        LimitWindow.objects.bulk_create(
            windows, update_conflicts=True, unique_fields=["pk"], update_fields=["drawn", "wanted_at", "wanted_by"]
        )


def sweep(now: datetime) -> None:
    """Delete rows of past windows, at most `SWEEP` at a time. Database errors propagate."""
    rows = LimitWindow.objects.select_for_update(skip_locked=True).filter(ends_at__lte=now - WINDOW_RETENTION)
    expired = list(rows.values_list("pk", flat=True)[:SWEEP])
    if expired:
        LimitWindow.objects.filter(pk__in=expired).delete()


def list_used(holders: Iterable[str], now: datetime) -> Mapping[tuple[str, Meter], int]:
    """Return how much each holder has used or reserved in the current windows, by holder and meter.

    Unused parts of shares do not count.
    """
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


# Label budgets: the budgets of a call's team and project, and the agent's budget for each end user.

MAX_USERS = 10_000
"""Maximum number of end users per agent and day with a budget of their own. All others share one budget."""
OTHER_USERS = "(other)"


class CountedUsers:
    """The end users that this process has counted today.

    Their number is limited, because callers can make up names.
    """

    def __init__(self) -> None:
        self._day = date.min
        self._agents: dict[str, set[str]] = {}

    def counted_name(self, agent: str, user: str) -> str:
        today = timezone.localdate()
        if today != self._day:
            self._day, self._agents = today, {}
        known = self._agents.setdefault(agent, set())
        if user not in known:
            if len(known) >= MAX_USERS:
                return OTHER_USERS
            known.add(user)
        return user


counted_users = owned(CountedUsers)


def list_label_holders(configuration: Configuration, agent: str, labels: Labels) -> tuple[LimitHolder, ...]:
    """Return the holders of the label budgets that apply to a call."""
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
        found = user_holder(agent, counted_users().counted_name(agent, labels.user), limits)
        if found is not None:
            yield found
