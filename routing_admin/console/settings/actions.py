"""What belongs to the installation: languages (configuration, one revision each), and how much and how long is kept.

Retention and recording are no configuration: they are audited, and neither exported nor taken back with a revision.
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
"""What a language code looks like: `en`, `zh-Hans`, `pt_BR`."""


def create_installation() -> None:
    """Makes the installation's one row where there is none yet."""
    Installation.objects.get_or_create(id=1)


def set_default_language(actor: Actor, code: str) -> AuditedAction:
    """Makes a language the one for requests that name none; empty takes the default away (then `en`).

    Raises `InvalidError` for a language that has no directive.
    """
    check_default_language(code)
    act = AuditedAction("installation.default_language", "language", code)
    with ledger.change(actor, act):
        row = Installation.current()
        row.default_language = code
        row.save()
    return act


def set_content_policy(actor: Actor, word: str) -> AuditedAction:
    """Makes a content policy the one where neither a route nor a service says; empty takes it away.

    Raises `InvalidError` for a word that is none of `POLICY_WORDS`.
    """
    check_content_policy(word)
    act = AuditedAction("installation.content_policy", "installation")
    with ledger.change(actor, act):
        row = Installation.current()
        row.content_policy = word
        row.save()
    return act


def check_default_language(code: str) -> None:
    """Raises `InvalidError` for a language that has no directive."""
    if code and match_language(code, directives()) is None:
        message = _("There is no language %(code)s. Add it with its directive first.") % {"code": code}
        raise InvalidError([Problem("default_language", message, "reference")])


def check_content_policy(word: str) -> None:
    """Raises `InvalidError` for a word that is none of `POLICY_WORDS`."""
    if word and word not in POLICY_WORDS:
        message = _("There is no content policy %(word)s. It is one of: %(words)s.")
        text = message % {"word": word, "words": join_words(POLICY_WORDS)}
        raise InvalidError([Problem("content_policy", text, "enum")])


def save_language(actor: Actor, code: str, directive: str) -> AuditedAction:
    """Adds a language, or gives one (a built-in one, too) another directive.

    Raises `InvalidError` for a code that is none, and for a directive that is empty or has several lines.
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
    """Raises `InUseError` when the default language would mean nothing without this one; `others` is what stays."""
    if match_language(default, {**others, code: ""}) == code and match_language(default, others) is None:
        raise InUseError(_("%(code)s is the default language. Choose another default first.") % {"code": code})


def remove_language(actor: Actor, code: str) -> AuditedAction:
    """Removes an added language; a built-in one has its own directive again."""
    act = AuditedAction("language.remove", "language", code)
    with ledger.change(actor, act):
        kept = {**LANGUAGE_DIRECTIVES, **dict(Language.objects.exclude(code=code).values_list("code", "directive"))}
        check_can_remove_language(code, Installation.current().default_language, kept)
        Language.objects.filter(code=code).delete()
    return act


def keep(actor: Actor, keeping: Keeping, *, expected: Keeping | None = None) -> None:
    """Changes retention; `expected` is what the page showed. Raises `ConflictError` when it is no longer so."""
    with ledger.audit(actor, AuditedAction("installation.retention", "installation")) as act:
        row = Installation.objects.select_for_update().get_or_create(id=1)[0]
        now = keeping_of(row)
        if expected is not None and now != expected:
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        for name in Keeping.__slots__:
            if getattr(now, name) != getattr(keeping, name):
                act.details[name] = [getattr(now, name), getattr(keeping, name)]
                setattr(row, name, getattr(keeping, name))
        row.save(update_fields=list(Keeping.__slots__))


def record_bodies(actor: Actor, on: bool) -> None:
    """Starts or stops keeping the bodies of requests; what was recorded stays until it expires."""
    with ledger.audit(actor, AuditedAction("installation.record_bodies", "installation", details={"on": on})):
        Installation.objects.update_or_create(id=1, defaults={"record_bodies": on})


# Exchange rates: one revision for each that is set or removed.


def set_rate(actor: Actor, rate: ExchangeRate) -> AuditedAction:
    """Sets a currency's rate, instead of the one it had. Raises `InvalidError`."""
    act = AuditedAction("exchange_rate.set", "exchange_rate", rate.currency)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [each for each in row.exchange_rates if each["currency"] != rate.currency]
        problems = list(check_rate(rate, [ExchangeRate(**each) for each in others], timezone.localdate()))
        if problems:
            raise InvalidError(problems)
        row.exchange_rates = [*others, asdict(rate)]
        row.save()
    return act


def remove_rate(actor: Actor, currency: str) -> AuditedAction:
    """Removes a currency's rate. Raises `NotFoundError` where it has none."""
    message = _("Removed the exchange rate of %(currency)s") % {"currency": currency}
    act = AuditedAction("exchange_rate.remove", "exchange_rate", currency, message=message)
    with ledger.change(actor, act):
        row = Installation.current()
        others = [each for each in row.exchange_rates if each["currency"] != currency]
        if len(others) == len(row.exchange_rates):
            raise NotFoundError(_("%(currency)s has no exchange rate.") % {"currency": currency})
        row.exchange_rates = others
        row.save()
    return act
