"""Keeping what came of the last test of a provider, so that nobody has to test again to know."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from capabilities.models import KeyTest, ProviderTest
from routing_admin.dispatch.provider_checks import CheckResult


def record_tests(answers: Mapping[str, CheckResult]) -> None:
    """Keeps the answers by their providers' names, each in place of the one before; one query."""
    now = timezone.now()
    rows = [ProviderTest(name=name, at=now, ms=each.ms, fault=each.fault[:40]) for name, each in answers.items()]
    ProviderTest.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["name"], update_fields=["at", "ms", "fault"]
    )


def record_key_tests(provider: str, answers: Mapping[str, CheckResult]) -> None:
    """Keeps the answers that a provider gave to its keys, by their names; one query."""
    now = timezone.now()
    rows = [
        KeyTest(provider=provider, key=name, at=now, ms=each.ms, fault=each.fault[:40])
        for name, each in answers.items()
    ]
    KeyTest.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["provider", "key"], update_fields=["at", "ms", "fault"]
    )
