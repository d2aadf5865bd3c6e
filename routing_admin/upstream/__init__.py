"""Call providers, with complete or streamed answers. The only package that imports aiohttp."""

from routing_admin.upstream.calls import Upstream, process_upstream, run_sync
from routing_admin.upstream.streams import Stream

__all__ = ["Stream", "Upstream", "process_upstream", "run_sync"]
