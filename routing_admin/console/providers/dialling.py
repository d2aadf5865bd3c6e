"""Test connections to providers, fetch their lists of models, and describe the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.providers.redaction import summarize
from capabilities.core.translatable import Translatable
from capabilities.core.wire import Fault
from capabilities.quantities import duration_text
from capabilities.sentences import join_sentences, translate_sentence
from routing_admin.console.providers.actions import record_key_tests, record_tests
from routing_admin.console.providers.forms import write_value
from routing_admin.dispatch import provider_checks as dial
from routing_admin.dispatch.provider_checks import CheckResult

if TYPE_CHECKING:
    from capabilities.models import Provider

ADVICE: Mapping[str, str | Promise] = {
    Fault.HTTP_401: gettext_lazy("The key was refused. Store a valid one."),
    Fault.HTTP_403: gettext_lazy(
        "The key has no access to this model. Choose another model, or extend the key's permissions."
    ),
    Fault.HTTP_402: gettext_lazy("The account has no credit left. Top it up at the provider."),
    Fault.HTTP_429: gettext_lazy("Too many requests at the moment. The key works; try again later."),
    Fault.HTTP_404: gettext_lazy("There is no such model or path. Check the base URL and the default model."),
    Fault.DNS_ERROR: gettext_lazy("The host name is unknown. Check the base URL."),
    Fault.CONNECT_REFUSED: gettext_lazy("Nothing listens at this address. Check host and port."),
    Fault.CONNECT_TIMEOUT: gettext_lazy("No answer in time. Check the address, and whether a proxy is needed."),
    Fault.TLS_CERT_ERROR: gettext_lazy("The certificate is not trusted. Check the address, or the proxy in between."),
    Fault.TLS_ERROR: gettext_lazy("No secure connection. Check whether the address should begin with https://."),
    Fault.READ_TIMEOUT: gettext_lazy("No answer in time. Try again, or set a longer timeout."),
    Fault.DEADLINE: gettext_lazy("No answer in time. Try again, or set a longer timeout."),
    Fault.BAD_HTTP: gettext_lazy("Check the base URL: host, port, and whether it should begin with https://."),
    Fault.BAD_CONTENT_TYPE: gettext_lazy(
        "This is not an answer from a model. Check the base URL: it may lead to a web page."
    ),
    Fault.REDIRECT: gettext_lazy("The address redirects. Enter the address it redirects to."),
}
"""Maps faults to advice, except for faults that the provider's own message explains."""


NOT_CALLED = frozenset({Fault.KEY_MISSING, Fault.ORIGIN_REFUSED})
"""Faults that are found before anything is sent. If there is an HTTP status, it was the provider that reported the
fault.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialResult:
    """The result of a call to a provider, as text.

    `quoted` is the provider's own message. `options` are compatibility options with which the call succeeded, and
    `options_url` opens the provider's form with these options filled in.
    """

    ok: bool
    sentence: str
    fault: str = ""
    status: int | None = None
    advice: str = ""
    models: tuple[str, ...] = ()
    took: str = ""
    quoted: str = ""
    options: str = ""
    options_url: str = ""

    @property
    def tone(self) -> str:
        return "ok" if self.ok else "bad"


def test(row: Provider) -> DialResult:
    """Test a provider's connection with a minimal chat request to its default model, and store the result."""
    answer = dial.provider_checker().test(row.name, row.default_model)
    record_tests({row.name: answer})
    return explain_answer(row.name, answer)


def test_each(rows: Sequence[Provider]) -> list[tuple[str, DialResult]]:
    answers = dial.provider_checker().test_each({row.name: row.default_model for row in rows})
    record_tests(answers)
    return [(row.name, explain_answer(row.name, answers[row.name])) for row in rows]


def test_keys(row: Provider, names: Sequence[str]) -> list[tuple[str, DialResult]]:
    """Test the named keys of a provider, or all if none are named. Store the results and return them by key name."""
    answers = dial.provider_checker().test_keys(row.name, row.default_model, names)
    record_key_tests(row.name, answers)
    return [(name, explain_answer(row.name, answer)) for name, answer in answers.items()]


def models(row: Provider) -> DialResult:
    return explain_answer(row.name, dial.provider_checker().models(row.name))


def explain_answer(name: str, result: CheckResult) -> DialResult:
    took = duration_text(result.ms)
    if not result.fault:
        sentence = _("%(name)s answered in %(time)s.") % {"name": name, "time": took}
        texts = {option: write_value(value) for option, value in result.quirks.items()}
        options = ", ".join(f"{option} = {text}" for option, text in texts.items())
        # Options with which the call succeeded are only offered, because the administrator decides whether to save
        # them.
        query = urlencode({f"quirk_{option}": text for option, text in texts.items()})
        url = f"{reverse('provider', args=[name])}?{query}" if texts else ""
        return DialResult(ok=True, sentence=sentence, models=result.models, took=took, options=options, options_url=url)
    if result.fault in NOT_CALLED and result.status is None:
        sentence = _("%(name)s was not called.") % {"name": name}
    else:
        sentence = _("%(name)s gave no usable answer within %(time)s.") % {"name": name, "time": took}
    # This program's own messages are advice. Other text comes from the provider and is quoted.
    is_own = isinstance(result.message, Translatable)
    advice = join_sentences((translate_sentence(result.message) if is_own else "", advice_for(result.fault)))
    quoted = "" if is_own else summarize(result.message)
    return DialResult(
        ok=False, sentence=sentence, fault=result.fault, status=result.status, advice=advice, took=took, quoted=quoted
    )


def advice_for(fault: str) -> str:
    return str(ADVICE.get(fault, ""))
