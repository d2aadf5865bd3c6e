"""Call providers for complete or streamed answers. This is the only package that imports aiohttp."""

from routing_admin.upstream.calls import Upstream, process_upstream, run_sync
from routing_admin.upstream.streams import Stream

__all__ = ["Stream", "Upstream", "process_upstream", "run_sync"]
