"""Advice that several rows of the fault table share.

If the caller caused the fault, the advice is to change the request, and does not mention a chain or a provider.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from capabilities.core.translatable import translatable


class Remedy(StrEnum):
    """The page where an administrator can correct the cause; the value is the page's URL name."""

    NONE = ""
    PROVIDER = "provider"
    ROUTE = "route"
    ROUTES = "routes"
    MATRIX = "matrix"


class Advice(NamedTuple):
    """A sentence with the placeholders `%(provider)s` and `%(model)s`, and the page where an administrator can act."""

    sentence: str
    page: Remedy = Remedy.NONE


ADDRESS = Advice(
    translatable("The address of %(provider)s gives no usable answer. Check its base URL and test it."),
    Remedy.PROVIDER,
)
PASSING = Advice(
    translatable("%(provider)s failed temporarily. Another candidate in the chain would cover such moments."),
    Remedy.ROUTE,
)
USELESS = Advice(
    translatable("%(model)s gave no usable answer. If this happens often, test %(provider)s."),
    Remedy.PROVIDER,
)
BROKE_OFF = Advice(
    translatable(
        "The caller had already received part of the answer, so no other model was tried. It can send the request "
        "again."
    )
)
ASKED_WRONG = Advice(translatable("%(model)s cannot accept this request. The caller must change it."))
LIMITED = Advice(
    translatable("%(provider)s rate-limits its calls. Another provider in the chain would cover this."),
    Remedy.ROUTE,
)
UNPAID = Advice(
    translatable("The account at %(provider)s has no credit left. Top it up there, or let another provider answer."),
    Remedy.PROVIDER,
)
NO_KEY = Advice(translatable("%(provider)s has no usable key. Add one."), Remedy.PROVIDER)
FORBIDDEN_ADDRESS = Advice(
    translatable("The address of %(provider)s is not allowed. Correct it, or allow it in the environment."),
    Remedy.PROVIDER,
)
