"""What was learnt of a model's refusals: parameters it would not take, so that they are left out from then on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Memory:
    """Refused parameters by (provider, model), in this process; safe between threads, forgotten on restart."""

    _refused: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refused_params(self, provider: str, model: str) -> frozenset[str]:
        """Parameters that the model is known not to take."""
        return self._refused.get((provider, model), frozenset())

    def refuse(self, provider: str, model: str, param: str) -> None:
        """Remember that the model did not take this parameter."""
        with self._lock:
            self._refused[provider, model] = self.refused_params(provider, model) | {param}
