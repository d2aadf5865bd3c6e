"""Actions on the installation: languages, exchange rates, content policy, retention and recording.

Retention and recording are not part of the configuration. They are audited but not exported, and restoring a revision
does not change them.
"""

from __future__ import annotations

import re
from dataclasses import asdict

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.delivery.reader import POLICY_WORDS
from capabilities.core.exchange import ExchangeRate, check_rate
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InUseError, InvalidError, NotFoundError
from capabilities.sentences import join_words
from routing_admin.configuration.installation import Keeping, directives, keeping_of
from routing_admin.configuration.revisions import ledger
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, match_language
from routing_admin.models import Installation, Language

CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
"""Language codes such as `en`, `zh-Hans` or `pt_BR`."""


def create_installation() -> None:
    Installation.objects.get_or_create(id=1)


def set_default_language(actor: Actor, code: str) -> AuditedAction:
    """Set the language of requests that name none. If it is empty, such requests use `en`.

    Raise `InvalidError` for a language without a directive.
    """
    check_default_language(code)
    act = AuditedAction("installation.default_language", "language", code)
    with ledger.change(actor, act):
        row = Installation.current()
        row.default_language = code
        row.save()
    return act


def set_content_policy(actor: Actor, word: str) -> AuditedAction:
    """Set the content policy that applies if neither the route nor the service has one. Empty means none.

    Raise `InvalidError` for a word that is not in `POLICY_WORDS`.
    """
    check_content_policy(word)
    act = AuditedAction("installation.content_policy", "installation")
    with ledger.change(actor, act):
        row = Installation.current()
        row.content_policy = word
        row.save()
    return act


def check_default_language(code: str) -> None:
    if code and match_language(code, directives()) is None:
        message = _("There is no language %(code)s. Add it with its directive first.") % {"code": code}
        raise InvalidError([Problem("default_language", message, "reference")])


def check_content_policy(word: str) -> None:
    if word and word not in POLICY_WORDS:
        message = _("There is no content policy %(word)s. It is one of: %(words)s.")
        text = message % {"word": word, "words": join_words(POLICY_WORDS)}
        raise InvalidError([Problem("content_policy", text, "enum")])


def save_language(actor: Actor, code: str, directive: str) -> AuditedAction:
    """Add a language, or change the directive of an added or built-in language.

    Raise `InvalidError` for a malformed code, and for a directive that is empty or has several lines.
    """
    if not CODE.fullmatch(code):
        message = _("A language code has letters, with optional parts after hyphens: en, zh, pt-BR.")
        raise InvalidError([Problem("code", message, "range")])
    if not directive.strip() or "\n" in directive:
        message = _("A directive is one line that tells the model which language to answer in.")
        raise InvalidError([Problem("directive", message, "required")])
    act = AuditedAction("language.save", "language", code)
    with ledger.change(actor, act):
        Language.objects.update_or_create(code=code, defaults={"directive": directive.strip()})
    return act


def check_can_remove_language(code: str, default: str, others: dict[str, str]) -> None:
    """Raise `InUseError` if the default language depends on this language. `others` are the remaining languages."""
    # The default may fall back to a less specific language, such as `pt-BR` to `pt`.
    if match_language(default, {**others, code: ""}) == code and match_language(default, others) is None:
        raise InUseError(_("%(code)s is the default language. Choose another default first.") % {"code": code})


def remove_language(actor: Actor, code: str) -> AuditedAction:
    """Remove an added language. A built-in language gets its original directive back."""
    act = AuditedAction("language.remove", "language", code)
    with ledger.change(actor, act):
        remaining = {
            **LANGUAGE_DIRECTIVES,
            **dict(Language.objects.exclude(code=code).values_list("code", "directive")),
        }
        check_can_remove_language(code, Installation.current().default_language, remaining)
        Language.objects.filter(code=code).delete()
    return act


def keep(actor: Actor, keeping: Keeping, *, expected: Keeping | None = None) -> None:
    """Change retention. Raise `ConflictError` if it is no longer `expected`, the values that the page showed."""
    with ledger.audit(actor, AuditedAction("installation.retention", "installation")) as act:
        # The row is locked. Otherwise two users who save at the same time would both find the values that they expect.
        row = Installation.objects.select_for_update().get_or_create(id=1)[0]
        current = keeping_of(row)
        if expected is not None and current != expected:
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        for name in Keeping.__slots__:
            if getattr(current, name) != getattr(keeping, name):
                act.details[name] = [getattr(current, name), getattr(keeping, name)]
                setattr(row, name, getattr(keeping, name))
        row.save(update_fields=list(Keeping.__slots__))


def record_bodies(actor: Actor, on: bool) -> None:
    with ledger.audit(actor, AuditedAction("installation.record_bodies", "installation", details={"on": on})):
        Installation.objects.update_or_create(id=1, defaults={"record_bodies": on})


# Exchange rates. Each change is a revision.


def set_rate(actor: Actor, rate: ExchangeRate) -> AuditedAction:
    act = AuditedAction("exchange_rate.set", "exchange_rate", rate.currency)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [entry for entry in row.exchange_rates if entry["currency"] != rate.currency]
        problems = list(check_rate(rate, [ExchangeRate(**entry) for entry in others], timezone.localdate()))
        if problems:
            raise InvalidError(problems)
        row.exchange_rates = [*others, asdict(rate)]
        row.save()
    return act


def remove_rate(actor: Actor, currency: str) -> AuditedAction:
    """Remove the exchange rate of a currency. Raise `NotFoundError` if it has none."""
    message = _("Deleted the exchange rate of %(currency)s") % {"currency": currency}
    act = AuditedAction("exchange_rate.remove", "exchange_rate", currency, message=message)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [entry for entry in row.exchange_rates if entry["currency"] != currency]
        if len(others) == len(row.exchange_rates):
            raise NotFoundError(_("%(currency)s has no exchange rate.") % {"currency": currency})
        row.exchange_rates = others
        row.save()
    return act
