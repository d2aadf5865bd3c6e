"""Every database engine returns a storable value exactly as it was written. Other values are rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities.actors import SYSTEM
from capabilities.core.storable import find_unstorable, make_json_storable, make_storable
from capabilities.errors import InvalidError
from capabilities.models import Provider
from routing_admin.configuration import integrity, rows
from routing_admin.configuration.audit import verify_audit
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.console.providers.actions import save_provider
from routing_admin.core.configuration.checks import check
from routing_admin.models import Revision
from tests.api.test_administration import Script
from tests.cast import AgentProgram, create_token

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\0\ud83d\ude00\U0001f600\\u"), max_size=6)
NUMBERS = st.floats() | st.integers() | st.sampled_from([-0.0, 1e15, 1e16, -1e300, 5e-324, 2**63, -(2**70), 1.0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(value=VALUES)
@settings(max_examples=100)
def test_every_database_engine_returns_the_value_of_make_storable(value: Any) -> None:
    fields = {"extra": {"x": value}, "display_name": "a\0b\ud83d"}
    row, _made = Provider.objects.update_or_create(name="odd", defaults=fields)
    row.refresh_from_db()
    assert canonical_json(row.extra) == canonical_json(make_storable({"x": value}))
    assert row.display_name == "a\ufffdb\ufffd"


@given(value=VALUES)
def test_make_json_storable_equals_the_json_of_make_storable(value: Any) -> None:
    assert canonical_json(json.loads(make_json_storable(json.dumps(value)))) == canonical_json(make_storable(value))
    assert canonical_json(make_storable(make_storable(value))) == canonical_json(make_storable(value))


@given(value=VALUES)
def test_storable_value_is_stored_unchanged(value: Any) -> None:
    if not list(find_unstorable(value)):
        assert make_storable(value) == value


@pytest.mark.parametrize("odd", [-0.0, 1e16, 4.5e17, -(2**63), 1.0, "\U0001f600"])
def test_unusual_values_leave_history_and_audit_chain_intact(odd: Any, demo: None) -> None:
    row = Provider.objects.get(name="echo")
    row.extra = {"odd": odd}
    save_provider(SYSTEM, row)
    stored = Revision.objects.latest("number").snapshot["providers"]
    assert [provider["extra"] for provider in stored if provider["name"] == "echo"] == [{"odd": odd}]
    assert integrity.history() == []
    assert integrity.configuration() == []
    assert verify_audit().problems == ()


FILE = """{"providers": [{"providerName": "odd", "endpoint": "https://api.example", "apiKey": "NOT_NEEDED",
"defaultModel": "m", "note": {"deep": [%s]}}]}"""


@pytest.mark.parametrize("odd", [r'"\ud83d"', r'"a\u0000"', r'{"\ud83d": 1}', "1e300", "9223372036854775808", "-1e19"])
def test_import_rejects_an_unstorable_value_with_its_path(odd: str, demo: None) -> None:
    """A value that cannot be stored is rejected even in an unknown field."""
    with pytest.raises(InvalidError) as refusal:
        import_configuration(SYSTEM, [FILE % odd])
    assert refusal.value.problems[0].field.startswith("providers[0].note.deep[0]")
    assert str(refusal.value).encode()
    assert not Provider.objects.filter(name="odd").exists()


@pytest.mark.parametrize("odd", ["-0.0", "1e16", r'"\ud83d\ude00"', "5e-324"])
def test_import_of_an_unusual_value_is_idempotent(odd: str, demo: None) -> None:
    """Unusual values are stored as written in the file."""
    assert import_configuration(SYSTEM, [FILE % odd]).revision
    assert Provider.objects.get(name="odd").extra == {"note": {"deep": [json.loads(odd)]}}
    assert import_configuration(SYSTEM, [FILE % odd]).revision is None


def test_unknown_field_of_an_additional_key_is_dropped_with_a_warning(demo: None) -> None:
    file = json.loads(FILE % 1)
    file["providers"][0]["keys"] = [{"name": "b", "apiKey": "${LLM_PROVIDER_ODD_API_KEY_2}", "note": 1}]
    preview = import_configuration(SYSTEM, [json.dumps(file)]).preview
    (warning,) = [problem for problem in preview.imported.problems if problem.field == "providers[0].keys[0].note"]
    assert (warning.severity, warning.message.split(",")[1]) == ("warning", " and is not kept.")


@pytest.fixture
def script(demo: None, admin_account: Any) -> Script:
    return Script(create_token(admin_account))


@pytest.mark.parametrize(
    ("path", "body", "field_path"),
    [
        ("/providers/new", {"endpoint": "https://api.example", "defaultModel": "m", "x": {"y": "\0"}}, "x.y"),
        ("/providers/new", {"endpoint": "https://api.example", "defaultModel": "m", "x": [1e300]}, "x[0]"),
        ("/services/new", {"provider": "echo", "model": "m\0"}, "model"),
        ("/agents/new", {"name": "a\0"}, "name"),
        ("/agents/text-agent/keys", {"label": "a\0"}, "label"),
        ("/languages/ja", {"directive": "a\0"}, "directive"),
    ],
)
def test_api_error_names_the_path_of_an_unstorable_value(path: str, body: Any, field_path: str, script: Script) -> None:
    answer = script.call("POST" if path.endswith("keys") else "PUT", path, body)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (422, field_path)


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
def test_name_with_control_characters_is_rejected(path: str, body: Any, script: Script) -> None:
    answer = script.call("POST" if path.endswith(("keys", "links")) else "PUT", path, body)
    assert answer.status_code == 422, answer.content


def test_existing_multiline_name_does_not_block_other_changes(demo: None) -> None:
    """An existing name with several lines may stay, but new ones are rejected."""
    Provider.objects.filter(name="echo").update(display_name="a\nb")
    old = rows.read()
    assert check(old, old) == []
    Provider.objects.filter(name="openai").update(display_name="c\nd")
    assert [problem.message.split(" ")[0] for problem in check(rows.read(), old)] == ["providers[0].displayName"]


def test_agent_cannot_store_unstorable_values(demo: None, text_agent: AgentProgram) -> None:
    assert text_agent.call("PUT", "/agents/made", {"name": "a\nb"}).status_code == 422
    for odd in (1e300, "\0", [2**63]):
        answer = text_agent.post("/artifacts", {"text": "x", "metadata": {"a": odd}})
        assert answer.status_code == 422
        assert answer.json()["details"][0]["path"].startswith("metadata.a")
