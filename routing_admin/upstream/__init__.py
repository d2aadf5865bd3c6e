"""How is a provider called? The only place that imports aiohttp: calls and streams out, answers and failures back."""

from routing_admin.upstream.calls import Upstream, process_upstream, run_sync
from routing_admin.upstream.streams import Stream

__all__ = ["Stream", "Upstream", "process_upstream", "run_sync"]
