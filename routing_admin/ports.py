"""Fills the ports through which the lower apps ask upward; called once when Django is ready."""

from __future__ import annotations


def connect() -> None:
    """Connects the ledger, the dialler and the routes."""
