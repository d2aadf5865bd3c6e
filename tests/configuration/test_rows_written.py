"""Writing a configuration to database rows: changes are found by comparing JSON, and values must be storable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capabilities.actors import Actor, AuditedAction
from capabilities.errors import InvalidError
from routing_admin.configuration import rows
from routing_admin.configuration.history import newest_configuration
from routing_admin.configuration.revisions import ledger
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.core.configuration.diff import diff, sentence
from routing_admin.core.configuration.specs import Configuration, KeyKind, KeySpec, LanguageSpec, ProviderSpec
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
KEYS = tuple(KeySpec(KeyKind.ENV, f"LLM_PROVIDER_A_API_KEY_{name}", name=name) for name in "23")
A = ProviderSpec("a", "https://a.example/v1", "m", extra={"x-note": 1}, more_keys=KEYS)
CONFIGURATION = Configuration(
    providers=(A,), languages=(LanguageSpec("pt", "Responda."), LanguageSpec("de", "Antworte."))
)


def write(configuration: Configuration) -> int:
    with ledger.change(ADA, AuditedAction("configuration.import")):
        rows.write(configuration)
    return Revision.objects.count()


@pytest.mark.parametrize("field", ["extra", "quirks", "timeouts"])
def test_true_instead_of_one_creates_a_revision(field: str) -> None:
    """`True` and `1` are equal in Python but differ in JSON."""
    configurations = [
        replace(CONFIGURATION, providers=(replace(A, **{field: {"x": value}}),)) for value in (1, True, 0, False)
    ]
    assert [write(configuration) for configuration in configurations] == [1, 2, 3, 4]
    assert [
        repr(getattr(configuration.providers[0], field)) for configuration in (rows.read(), newest_configuration())
    ] == ["{'x': False}"] * 2


def test_order_of_additional_keys_is_a_change() -> None:
    """Additional keys are used in their stored order."""
    write(CONFIGURATION)
    reordered = replace(CONFIGURATION, providers=(replace(A, more_keys=KEYS[::-1]),))
    sentences = [sentence(change) for change in diff(CONFIGURATION, reordered)]
    assert sentences == ['more_keys of provider “a” changes from ["2", "3"] to ["3", "2"].']
    assert write(reordered) == 2
    assert diff(reordered, rows.read()) == ()
    fewer = replace(CONFIGURATION, providers=(replace(A, more_keys=KEYS[1:]),))
    assert [change.field for change in diff(CONFIGURATION, fewer)] == ['more_keys["2"]']


def test_order_of_languages_is_not_a_change() -> None:
    """Languages are always read in the same order."""
    assert diff(CONFIGURATION, replace(CONFIGURATION, languages=CONFIGURATION.languages[::-1])) == ()


def test_value_that_would_read_back_differently_is_rejected() -> None:
    """For example, a number used as a key in JSON is read back as a string."""
    unwritable: Any = {1: "x"}
    with pytest.raises(InvalidError, match="cannot be stored: provider a extra"):
        write(replace(CONFIGURATION, providers=(replace(A, extra=unwritable),)))
    assert rows.read() == Configuration()
    assert Revision.objects.count() == 0


def test_unknown_catalogue_is_kept_with_a_warning() -> None:
    provider = '{"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"}'
    result = import_configuration(ADA, [f'{{"providers": [{provider}], "routing": {{}}, "catalogue": "of a day"}}'])
    assert [problem.field for problem in result.preview.imported.problems] == ["catalogue"]
    assert rows.read().catalogue == "of a day"
