"""How many file descriptors the process may open, and how many of them its callers may have."""

from __future__ import annotations

import resource

from django.conf import settings

MAX_DESCRIPTORS = 32_768
RESERVED_DESCRIPTORS = 128
"""For databases, files, Redis and health checks."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit as far as the hard one and `MAX_DESCRIPTORS` allow; return what it is now.

    Many systems start a process with 1,024, which a few callers with idle connections use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many descriptors this process may open; never more than are used."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MAX_DESCRIPTORS)


def max_connections(descriptors: int) -> int:
    """Return how many callers may be connected, each of whose calls may need a connection to a provider."""
    return max((descriptors - RESERVED_DESCRIPTORS) // 2, 1)


def find_descriptor_shortage() -> str:
    """Return what is wrong with this process's limit in a sentence; empty where callers have room for all requests."""
    limit = descriptor_limit()
    wanted = settings.MAX_CALLS + settings.MAX_REQUESTS
    if max_connections(limit) >= wanted:
        return ""
    return (
        f"A process may open {limit} files, so callers may have {max_connections(limit)} connections, fewer than the "
        f"{wanted} requests that the settings allow. Raise the hard limit, for example with LimitNOFILE=65536 in the "
        "unit (docs/limits.md)."
    )
