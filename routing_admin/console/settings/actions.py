"""Actions on the installation's settings: languages, exchange rates, content policy, retention and recording.

Retention and recording are not part of the configuration. They are audited, but not exported, and restoring a revision
does not change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.delivery.reader import HTML_FORMS, POLICY_WORDS
from capabilities.core.delivery.text_limit import find_problem
from capabilities.core.exchange import ExchangeRate, check_rate
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InUseError, InvalidError, NotFoundError
from capabilities.sentences import join_words, translate_sentence
from routing_admin.configuration.installation import RetentionSettings, directives, retention_settings
from routing_admin.configuration.revisions import ledger
from routing_admin.console.settings.queries import read_settings
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, match_language
from routing_admin.models import Installation, Language

LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
"""Pattern for language codes such as `en`, `zh-Hans` or `pt_BR`."""


def create_installation() -> None:
    Installation.objects.get_or_create(id=1)


def set_default_language(actor: Actor, code: str) -> AuditedAction:
    """Set the default language, which applies to requests that name none. An empty value means `en`.

    Raise `InvalidError` if there is no directive for this language.
    """
    check_default_language(code)
    return _set_field(actor, AuditedAction("installation.default_language", "language", code), "default_language", code)


def set_content_policy(actor: Actor, word: str) -> AuditedAction:
    """Set the default content policy, which applies if route and service have none. An empty value means no policy.

    Raise `InvalidError` for a policy that is not in `POLICY_WORDS`.
    """
    check_content_policy(word)
    return _set_field(actor, AuditedAction("installation.content_policy", "installation"), "content_policy", word)


def set_content_text(actor: Actor, word: str) -> AuditedAction:
    """Set how much text of a file a model gets by default. An empty value means the program's default.

    The values of a route or service take precedence. Raise `InvalidError` for a value that is neither a number of
    characters nor a percentage.
    """
    check_content_text(word)
    return _set_field(actor, AuditedAction("installation.content_text", "installation"), "content_text", word)


def set_content_html(actor: Actor, word: str) -> AuditedAction:
    """Set the form in which models get web pages by default. An empty value means the program's default.

    The values of a route or service take precedence. Raise `InvalidError` for a value that is not in `HTML_FORMS`.
    """
    check_content_html(word)
    return _set_field(actor, AuditedAction("installation.content_html", "installation"), "content_html", word)


def _set_field(actor: Actor, act: AuditedAction, field: str, value: str) -> AuditedAction:
    with ledger.change(actor, act):
        row = Installation.current()
        setattr(row, field, value)
        row.save()
    return act


def check_content_html(word: str) -> None:
    if word and word not in HTML_FORMS:
        message = _("There is no form of web pages %(word)s. It is one of: %(words)s.")
        raise InvalidError([Problem("content_html", message % {"word": word, "words": join_words(HTML_FORMS)}, "enum")])


def check_content_text(word: str) -> None:
    if word and (problem := find_problem(word)):
        raise InvalidError([Problem("content_text", translate_sentence(problem), "range")])


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
    """Add a language, or change the directive of an existing one.

    Raise `InvalidError` for a malformed code, and for a directive that is empty or has several lines.
    """
    if not LANGUAGE_CODE.fullmatch(code):
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
    """Raise `InUseError` if the default language needs this language. `others` are the remaining languages."""
    # The default language may fall back to a less specific one, such as `pt-BR` to `pt`.
    if match_language(default, {**others, code: ""}) == code and match_language(default, others) is None:
        raise InUseError(_("%(code)s is the default language. Choose another default first.") % {"code": code})


def remove_language(actor: Actor, code: str) -> AuditedAction:
    """Remove an added language. A built-in language is reset to its original directive."""
    act = AuditedAction("language.remove", "language", code)
    with ledger.change(actor, act):
        remaining = {
            **LANGUAGE_DIRECTIVES,
            **dict(Language.objects.exclude(code=code).values_list("code", "directive")),
        }
        check_can_remove_language(code, Installation.current().default_language, remaining)
        Language.objects.filter(code=code).delete()
    return act


def set_retention(actor: Actor, keeping: RetentionSettings) -> None:
    with ledger.audit(actor, AuditedAction("installation.retention", "installation")) as act:
        row = Installation.objects.get_or_create(id=1)[0]
        current = retention_settings(row)
        for name in RetentionSettings.__slots__:
            if getattr(current, name) != getattr(keeping, name):
                act.details[name] = [getattr(current, name), getattr(keeping, name)]
                setattr(row, name, getattr(keeping, name))
        row.save(update_fields=list(RetentionSettings.__slots__))


def record_bodies(actor: Actor, on: bool) -> None:
    with ledger.audit(actor, AuditedAction("installation.record_bodies", "installation", details={"on": on})):
        Installation.objects.update_or_create(id=1, defaults={"record_bodies": on})


@dataclass(frozen=True, slots=True)
class ConfiguredSetting:
    """A setting that is part of the configuration: a function that checks a value, and the action that sets it."""

    check: Callable[[str], None]
    save: Callable[[Actor, str], AuditedAction]


CONFIGURED = {
    "default_language": ConfiguredSetting(check_default_language, set_default_language),
    "content_policy": ConfiguredSetting(check_content_policy, set_content_policy),
    "content_text": ConfiguredSetting(check_content_text, set_content_text),
    "content_html": ConfiguredSetting(check_content_html, set_content_html),
}


def save_settings(actor: Actor, changes: Mapping[str, Any], *, expected: Mapping[str, Any]) -> int | None:
    """Change these settings, named as in `read_settings`. Return the revision if the configuration changed, else None.

    Raise `InvalidError`, or `ConflictError` if a setting no longer has its expected value. In both cases, nothing is
    changed.
    """
    with ledger.exclusive():
        stored = read_settings()
        changes = {name: value for name, value in changes.items() if value != stored[name]}
        if any(stored[name] != expected[name] for name in changes):
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        # Each setting is written by its own action, so check all values before writing any.
        for name in changes.keys() & CONFIGURED.keys():
            CONFIGURED[name].check(changes[name])
        revision = _save_configured(actor, {name: changes[name] for name in CONFIGURED if name in changes})
        keeping = {name: changes.get(name, stored[name]) for name in RetentionSettings.__slots__}
        if changes.keys() & keeping.keys():
            set_retention(actor, RetentionSettings(**keeping))
        if "record_bodies" in changes:
            record_bodies(actor, changes["record_bodies"])
    return revision


def _save_configured(actor: Actor, changes: Mapping[str, str]) -> int | None:
    if not changes:
        return None
    if len(changes) == 1:
        [(name, value)] = changes.items()
        return CONFIGURED[name].save(actor, value).revision
    # All actions within one `ledger.change` share its revision.
    with ledger.change(actor, AuditedAction("installation.settings", "installation")) as act:
        for name, value in changes.items():
            CONFIGURED[name].save(actor, value)
    return act.revision


# Each change to an exchange rate is a separate revision.


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
    """Remove the exchange rate of a currency. Raise `NotFoundError` if there is none."""
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
