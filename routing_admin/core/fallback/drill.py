"""The fire drill: a provider that an administrator lets fail for a while, so that everybody sees whether chains hold.

While it lasts nobody is called there and nothing is remembered of it. It ends by the clock alone, whatever happens to
whoever began it; a clock that is set back does not make it longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.wire import Failure, Fault
from capabilities.core.worded import worded

CHOICES = (30, 60, 300)
"""For how many seconds a provider may be let fail."""
USUAL_SECONDS = 60
SKEW_SECONDS = 10.0
"""By how much the clock of another machine may be behind."""
NOT_CALLED = worded("Fire drill by %(actor)s: not called.")


@dataclass(frozen=True, slots=True)
class DrillWindow:
    """One drill: its number, the provider, who began it, and when it begins and ends, in seconds since 1970."""

    number: int
    provider: str
    actor: str
    began: float
    ends: float

    def lasts(self, now: float) -> bool:
        """Whether it goes on at that moment."""
        return self.began - SKEW_SECONDS <= now < self.ends

    def stops(self, provider: str, now: float) -> bool:
        """Whether that provider is not to be called at that moment."""
        return provider == self.provider and self.lasts(now)

    def seconds_left(self, now: float) -> int:
        """Whole seconds until it ends, rounded up; 0 when it is over."""
        return max(0, -int(-(self.ends - now) // 1)) if self.lasts(now) else 0

    def failure(self) -> Failure:
        """What an attempt at the provider comes to."""
        return Failure(Fault.FIRE_DRILL, worded(NOT_CALLED, actor=self.actor))
