"""Read past revisions and their configurations."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from capabilities.errors import NotFoundError
from routing_admin.core.configuration.as_json import from_json
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.endpoints import without_foreign_base_urls
from routing_admin.models import Revision


def newest_number() -> int | None:
    return Revision.objects.values_list("number", flat=True).first()


def newest_change() -> tuple[int, str, datetime] | None:
    """Return the newest revision's number, author and time, or None if there is no revision."""
    return Revision.objects.values_list("number", "actor", "created_at").first()


def number_before(number: int) -> int:
    """Return the number of the revision before this one.

    Before the first revision it is 0, which means the empty configuration.
    """
    return Revision.objects.filter(number__lt=number).values_list("number", flat=True).first() or 0


def newest_configuration() -> Configuration:
    newest = Revision.objects.first()
    return _read(newest) if newest else EMPTY


def configuration_at(number: int) -> Configuration:
    """Return a revision's configuration, which is empty for revision 0.

    Raise `NotFoundError` if the revision does not exist.
    """
    if number == 0:
        return EMPTY
    revision = Revision.objects.filter(number=number).first()
    if revision is None:
        raise NotFoundError(_("There is no revision %(number)s.") % {"number": number})
    return _read(revision)


def _read(revision: Revision) -> Configuration:
    # In older revisions, a service may contain another provider's base URL; it is removed.
    return without_foreign_base_urls(from_json(revision.snapshot))
