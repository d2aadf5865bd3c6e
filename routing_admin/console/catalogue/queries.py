"""What the page of the catalogue shows of our own rows."""

from __future__ import annotations

from django.db.models import QuerySet

from capabilities.models import Provider


def list_called_providers() -> list[str]:
    """The names of the providers that can be asked for a list of models."""
    return list(_called().values_list("name", flat=True))


def find_called_provider(name: str) -> Provider | None:
    """The enabled provider of that name; None for none."""
    return _called().filter(name=name).first()


def _called() -> QuerySet[Provider]:
    return Provider.objects.filter(enabled=True).exclude(protocol="echo")
