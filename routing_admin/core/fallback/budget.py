"""How many retries a provider may cost altogether, so that a provider that fails for everybody is not asked thrice.

A purse per provider (faults reference §3): a retry costs 5 of 500, an answer gives back what its retries cost, or 1
where it needed none. With an empty purse the next candidate is asked at once; the first call is always free.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

FULL = 500
RETRY_COST = 5
PLAIN_REFUND = 1


@dataclass(slots=True)
class RetryBudget:
    """The purses of this process, safe between threads; only those that are not full are kept."""

    _spent: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, provider: str) -> bool:
        """Pay for one retry; False when the purse cannot."""
        with self._lock:
            spent = self._spent.get(provider, 0) + RETRY_COST
            if spent > FULL:
                return False
            self._spent[provider] = spent
            return True

    def refund(self, provider: str, retries: int) -> None:
        """An answer came after that many retries."""
        with self._lock:
            left = self._spent.get(provider, 0) - (retries * RETRY_COST or PLAIN_REFUND)
            if left > 0:
                self._spent[provider] = left
            else:
                self._spent.pop(provider, None)
