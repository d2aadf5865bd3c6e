"""Outgoing HTTP: the only place that imports httpx. Calls and streams in, answers, failures and events out."""

from routing_admin.upstream.calls import Upstream, configured_upstream, run_sync
from routing_admin.upstream.streams import Stream

__all__ = ["Stream", "Upstream", "configured_upstream", "run_sync"]
