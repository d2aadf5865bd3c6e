"""What may stop an act: somebody changed the thing meanwhile, or still uses it; and the same asked beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.core.problems import Problem
from capabilities.core.storable import is_name
from capabilities.core.worded import worded
from capabilities.errors import ActionError, ConflictError, InUseError, InvalidError
from capabilities.sentences import join_words
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.memory import Place, Refused
from routing_admin.models import LearnedRefusal
from routing_admin.platform.databases.router import LOGS


def check_version(row: Any, expected: int | None) -> None:
    """Raises `ConflictError` when the row is gone or not the version that was seen; None expects nothing."""
    if expected is None:
        return
    if row is None or row.version != expected:
        raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))


def save_row(row: Any, expected: int | None) -> None:
    """Write a row, new or of the version expected; its version counts up from the stored one.

    Call it inside a ledger's change. Raise `ConflictError` as `check_version`; a deleted row is not made again.
    """
    if row.pk is None:
        row.save()
        return
    stored = type(row)._default_manager.filter(pk=row.pk).first()
    check_version(stored, expected)
    row.version = stored.version + 1 if stored else 0
    row.save(force_update=True)


def save_fields(row: Any, *fields: str) -> None:
    """Write these fields alone, and count the version up from the stored one. Call it inside a ledger's change."""
    row.version = type(row)._default_manager.filter(pk=row.pk).values_list("version", flat=True).first() or 0
    row.version += 1
    row.save(update_fields=["version", *fields])


def check_one_line(field: str, text: str) -> None:
    """Raise `InvalidError` for a name with a line break or another control character in it."""
    if not is_name(text):
        message = worded("%(path)s must be on one line, without control characters.", path=field)
        raise InvalidError([Problem(field, message, "range")])


def check_unused(users: Sequence[str], sentence: str) -> None:
    """Raises `InUseError` with the sentence, `%(users)s` being who uses the thing; nothing when nobody does."""
    if users:
        raise InUseError(sentence % {"users": join_words(users)})


def find_refusal(check: Callable[..., None], *arguments: Any) -> str:
    """The sentence a check would raise, empty when it lets the act pass: a disabled button's reason."""
    try:
        check(*arguments)
    except ActionError as refusal:
        return str(refusal)
    return ""


# Refused parameters in their rows, by provider and model, with the address they were learned at.

MAX_CHARACTERS = 200
"""Longer names of models and parameters are known in memory alone."""


def addresses_of(configuration: Configuration) -> dict[Place, str]:
    """Return a digest of protocol and endpoint for each model that a service or a route names."""
    digests = {
        each.name: hashlib.sha256(f"{each.protocol} {each.endpoint}".encode()).hexdigest()
        for each in configuration.providers
    }
    defaults = {each.name: each.default_model for each in configuration.providers}
    return {place: digests[place[0]] for place in _list_places(configuration, defaults) if place[0] in digests}


def _list_places(configuration: Configuration, defaults: Mapping[str, str]) -> Iterator[Place]:
    yield from defaults.items()
    for service in configuration.services:
        yield service.provider, service.model
    for route in configuration.routes:
        for each in route.candidates:
            yield each.provider, each.model or defaults.get(each.provider, "")


def read_refusals(addresses: Mapping[Place, str]) -> dict[Place, Refused]:
    """Return what is kept, by place; rows of models that are configured no more, or elsewhere, are removed."""
    known: dict[Place, dict[str, str | None]] = {}
    gone = []
    for row in LearnedRefusal.objects.order_by("pk"):
        place = (row.provider, row.model)
        if addresses.get(place) == row.address:
            known.setdefault(place, {})[row.name] = row.sent_as or None
        else:
            gone.append(row.pk)
    if gone:
        LearnedRefusal.objects.filter(pk__in=gone).delete()
    return dict(known)


def write_refusals(place: Place, address: str, before: Refused, now: Refused) -> None:
    """Write what this process learned of a model or forgot since it last read its rows; another's rows stay."""
    provider, model = place
    rows = [
        LearnedRefusal(
            provider=provider,
            model=model,
            name=name,
            sent_as=sent_as or "",
            address=address,
            learned_at=timezone.now(),
        )
        for name, sent_as in now.items()
        if (name, sent_as) not in before.items() and max(len(model), len(name)) <= MAX_CHARACTERS
    ]
    gone = before.keys() - now.keys()
    with transaction.atomic(using=LOGS):
        if gone:
            LearnedRefusal.objects.filter(provider=provider, model=model, name__in=gone).delete()
        if rows:
            LearnedRefusal.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["provider", "model", "name"],
                update_fields=["sent_as", "address", "learned_at"],
            )
