"""One rule for storable values: what is written is read back equally from every engine, and the rest is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities.acts import SYSTEM
from capabilities.core.storable import find_unstorable, settle, settle_json
from capabilities.errors import InvalidError
from capabilities.models import Provider
from routing_admin.configuration import integrity, rows
from routing_admin.configuration.audit import verify_audit
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.console.providers.actions import save_provider
from routing_admin.core.configuration.checks import check
from routing_admin.models import Revision
from tests.api.test_administration import Script
from tests.cast import AgentProgram, token_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\0\ud83d\ude00\U0001f600\\u"), max_size=6)
NUMBERS = st.floats() | st.integers() | st.sampled_from([-0.0, 1e15, 1e16, -1e300, 5e-324, 2**63, -(2**70), 1.0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def words(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(value=VALUES)
@settings(max_examples=100)
def test_every_engine_gives_back_the_settled_value(value: Any) -> None:
    """Every engine returns the settled value with the same type and sign, in JSON and in text."""
    fields = {"extra": {"x": value}, "display_name": "a\0b\ud83d"}
    row, _made = Provider.objects.update_or_create(name="odd", defaults=fields)
    row.refresh_from_db()
    assert words(row.extra) == words(settle({"x": value}))
    assert row.display_name == "a\ufffdb\ufffd"


@given(value=VALUES)
def test_json_is_settled_as_its_value_is(value: Any) -> None:
    """Settling JSON text gives the settled value's JSON."""
    assert words(json.loads(settle_json(json.dumps(value)))) == words(settle(value))
    assert words(settle(settle(value))) == words(settle(value))


@given(value=VALUES)
def test_what_passes_the_rule_is_kept_as_it_is(value: Any) -> None:
    """A storable value is stored unchanged, except for the notation of a number."""
    if not list(find_unstorable(value)):
        assert settle(value) == value


@pytest.mark.parametrize("odd", [-0.0, 1e16, 4.5e17, -(2**63), 1.0, "\U0001f600"])
def test_odd_values_leave_a_history_that_is_whole(odd: Any, demo: None) -> None:
    """Unusual but storable values leave an intact history and audit chain."""
    row = Provider.objects.get(name="echo")
    row.extra = {"odd": odd}
    save_provider(SYSTEM, row)
    stored = Revision.objects.latest("number").snapshot["providers"]
    assert [each["extra"] for each in stored if each["name"] == "echo"] == [{"odd": odd}]
    assert integrity.history() == []
    assert integrity.configuration() == []
    assert verify_audit().problems == ()


FILE = """{"providers": [{"providerName": "odd", "endpoint": "https://api.example", "apiKey": "NOT_NEEDED",
"defaultModel": "m", "note": {"deep": [%s]}}]}"""


@pytest.mark.parametrize("odd", [r'"\ud83d"', r'"a\u0000"', r'{"\ud83d": 1}', "1e300", "9223372036854775808", "-1e19"])
def test_an_import_refuses_what_cannot_be_stored_with_its_place(odd: str, demo: None) -> None:
    """An import rejects a value that cannot be stored with its path, also in an unknown field."""
    with pytest.raises(InvalidError) as refusal:
        import_configuration(SYSTEM, [FILE % odd])
    assert refusal.value.problems[0].field.startswith("providers[0].note.deep[0]")
    assert str(refusal.value).encode()
    assert not Provider.objects.filter(name="odd").exists()


@pytest.mark.parametrize("odd", ["-0.0", "1e16", r'"\ud83d\ude00"', "5e-324"])
def test_an_import_of_an_odd_value_says_what_it_did(odd: str, demo: None) -> None:
    """An unusual value is stored as in the file, so importing the file again changes nothing."""
    assert import_configuration(SYSTEM, [FILE % odd]).revision
    assert Provider.objects.get(name="odd").extra == {"note": {"deep": [json.loads(odd)]}}
    assert import_configuration(SYSTEM, [FILE % odd]).revision is None


def test_unknown_fields_of_further_keys_are_said(demo: None) -> None:
    """An unknown field of an additional key is a warning that it is not kept."""
    file = json.loads(FILE % 1)
    file["providers"][0]["keys"] = [{"name": "b", "apiKey": "${LLM_PROVIDER_ODD_API_KEY_2}", "note": 1}]
    preview = import_configuration(SYSTEM, [json.dumps(file)]).preview
    (said,) = [each for each in preview.imported.problems if each.field == "providers[0].keys[0].note"]
    assert (said.severity, said.message.split(",")[1]) == ("warning", " and is not kept.")


@pytest.fixture
def script(demo: None, admin_account: Any) -> Script:
    return Script(token_of(admin_account))


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/providers/new", {"endpoint": "https://api.example", "defaultModel": "m", "x": {"y": "\0"}}, "x.y"),
        ("/providers/new", {"endpoint": "https://api.example", "defaultModel": "m", "x": [1e300]}, "x[0]"),
        ("/services/new", {"provider": "echo", "model": "m\0"}, "model"),
        ("/agents/new", {"name": "a\0"}, "name"),
        ("/agents/text-agent/keys", {"label": "a\0"}, "label"),
        ("/languages/ja", {"directive": "a\0"}, "directive"),
    ],
)
def test_a_script_is_told_the_place_of_what_cannot_be_stored(path: str, body: Any, where: str, script: Script) -> None:
    """A value that cannot be stored is a 422 with its path."""
    answer = script.call("POST" if path.endswith("keys") else "PUT", path, body)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (422, where)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/providers/a%0Ab", {"endpoint": "https://api.example", "defaultModel": "m"}),
        ("/providers/new", {"endpoint": "https://api.example", "defaultModel": "m", "displayName": "a\nb"}),
        ("/services/new", {"provider": "echo", "model": "m", "name": "a\u2028b"}),
        ("/services/new%0D", {"provider": "echo", "model": "m"}),
        ("/routes/a%1Bb", {"provider": "echo"}),
        ("/agents/new", {"name": "a\tb"}),
        ("/agents/text-agent/keys", {"label": "a\nb"}),
        ("/agents/text-agent/links", {"name": "a\nb", "days": 1}),
    ],
)
def test_a_name_stands_on_one_line(path: str, body: Any, script: Script) -> None:
    """A name with line breaks or other control characters is a 422 in every call."""
    answer = script.call("POST" if path.endswith(("keys", "links")) else "PUT", path, body)
    assert answer.status_code == 422, answer.content


def test_a_name_that_is_there_already_stops_no_other_change(demo: None) -> None:
    """An existing multi-line name does not block other changes, but a new one is rejected."""
    Provider.objects.filter(name="echo").update(display_name="a\nb")
    old = rows.read()
    assert check(old, old) == []
    Provider.objects.filter(name="openai").update(display_name="c\nd")
    assert [each.message.split(" ")[0] for each in check(rows.read(), old)] == ["providers[0].displayName"]


def test_an_agent_gives_nothing_that_cannot_be_stored(demo: None, text_agent: AgentProgram) -> None:
    """Agents' names and artifacts' metadata that cannot be stored are a 422 with the path."""
    assert text_agent.call("PUT", "/agents/made", {"name": "a\nb"}).status_code == 422
    for odd in (1e300, "\0", [2**63]):
        answer = text_agent.post("/artifacts", {"text": "x", "metadata": {"a": odd}})
        assert answer.status_code == 422
        assert answer.json()["details"][0]["path"].startswith("metadata.a")
