"""In which time is a limit counted? The minute of the clock, the day and the month of the calendar, or the moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum

from capabilities.core.services.agent_limits import Meter


class Period(StrEnum):
    """How long what is used counts; `NOW` as long as the call is under way."""

    NOW = "now"
    MINUTE = "minute"
    DAY = "day"
    MONTH = "month"


PERIODS: Mapping[Meter, Period] = {
    Meter.REQUESTS_PER_MINUTE: Period.MINUTE,
    Meter.IN_FLIGHT: Period.NOW,
    Meter.BYTES_PER_DAY: Period.DAY,
    Meter.TOKENS_PER_DAY: Period.DAY,
    Meter.TOKENS_PER_MONTH: Period.MONTH,
    Meter.MONEY_PER_DAY: Period.DAY,
    Meter.MONEY_PER_MONTH: Period.MONTH,
}


@dataclass(frozen=True, slots=True)
class Window:
    """One minute, day or month: a name that is its own, and when it ends; that of the moment never does."""

    name: str
    ends_at: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Whether another one counts by now."""
        return self.ends_at is not None and now >= self.ends_at


MOMENT = Window("now")


def window_at(period: Period, now: datetime, zone: tzinfo) -> Window:
    """The window that `now` lies in; days and months are those of the zone, whatever its clocks do."""
    if period is Period.NOW:
        return MOMENT
    if period is Period.MINUTE:
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        return Window(f"{minute:%Y-%m-%dT%H:%MZ}", minute + timedelta(minutes=1))
    today = now.astimezone(zone).date()
    if period is Period.DAY:
        return Window(f"{today:%Y-%m-%d}", _midnight(today + timedelta(days=1), zone))
    return Window(f"{today:%Y-%m}", _midnight((today.replace(day=1) + timedelta(days=32)).replace(day=1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
