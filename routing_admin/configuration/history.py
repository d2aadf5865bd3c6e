"""Revisions read back: which is the newest, which comes before another, and the configuration of each."""

from __future__ import annotations

from django.utils.translation import gettext as _

from capabilities.errors import NotFoundError
from routing_admin.core.configuration.as_json import from_json
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.endpoints import with_own_addresses
from routing_admin.models import Revision


def newest_number() -> int | None:
    """The number of the newest revision; None before the first."""
    return Revision.objects.values_list("number", flat=True).first()


def number_before(number: int) -> int:
    """The number of the revision before that one; 0, the empty configuration, before the first."""
    return Revision.objects.filter(number__lt=number).values_list("number", flat=True).first() or 0


def newest_configuration() -> Configuration:
    """The configuration of the newest revision; the empty one before the first."""
    newest = Revision.objects.first()
    return _read(newest) if newest else EMPTY


def configuration_at(number: int) -> Configuration:
    """The configuration of a revision; 0 is the empty one before the first.

    Raises `NotFoundError` for a number that no revision has.
    """
    if number == 0:
        return EMPTY
    revision = Revision.objects.filter(number=number).first()
    if revision is None:
        raise NotFoundError(_("There is no revision %(number)s.") % {"number": number})
    return _read(revision)


def _read(revision: Revision) -> Configuration:
    """A revision's value; older ones gave services addresses that were not their provider's."""
    return with_own_addresses(from_json(revision.snapshot))
