"""What every page knows: who is there, what they may do, where one can go."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, Any]:
    """Variables of every template."""
    return {}
