"""A provider's additional keys in exports, imports, database rows and undo."""

from __future__ import annotations

import json

import pytest

from capabilities.actors import Actor
from capabilities.models import Provider, StoredKey
from capabilities.secrets import open_key
from routing_admin.configuration import rows, snapshot
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.console.history.actions import restore
from routing_admin.core.configuration.specs import EMPTY, KeyKind
from routing_admin.core.files.exporting import Mode, export
from routing_admin.core.files.importing import FileFormat, import_files
from routing_admin.models import Revision

ADA = Actor("person", "ada")
SECRETS = ("sk-first-0123456789abcdef", "sk-second-0123456789abcdef")


def routing_file(**fields: object) -> str:
    provider = {
        "providerName": "openai",
        "apiKey": SECRETS[0],
        "endpoint": "https://api.openai.com/v1",
        "defaultModel": "gpt-4o",
        **fields,
    }
    return json.dumps({"providers": [provider], "routing": {"default": {"provider": "openai"}}})


FURTHER = [
    {"name": "second", "apiKey": SECRETS[1]},
    {"apiKey": "${LLM_PROVIDER_OPENAI_API_KEY_9}", "enabled": False},
    {"name": "fourth", "apiKey": "xxx"},
]


def test_stored_key_is_exported_as_the_variable_with_the_next_free_number():
    first = import_files(EMPTY, [routing_file(keyName="main", keys=FURTHER)])
    assert (first.problems[0].field, first.keys) == ("providers[0].keys[2].apiKey", {"openai": SECRETS[0]})
    assert first.further_keys == {"openai": (SECRETS[1],)}
    text = export(first.configuration, FileFormat.ROUTING).text
    assert json.loads(text)["providers"][0] == {
        "providerName": "openai",
        "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY}",
        "endpoint": "https://api.openai.com/v1",
        "defaultModel": "gpt-4o",
        "keyName": "main",
        "keys": [
            {"name": "second", "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY_2}"},
            {"name": "3", "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY_9}", "enabled": False},
            {"name": "fourth", "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY_3}"},
        ],
    }
    assert not any(secret in text for secret in SECRETS)
    assert export(import_files(EMPTY, [text]).configuration, FileFormat.ROUTING).text == text
    assert import_files(first.configuration, [text]).configuration == first.configuration, "stored keys stay stored"


def test_missing_key_list_keeps_additional_keys_and_an_empty_list_removes_them():
    full = import_files(EMPTY, [routing_file(keyName="main", keys=FURTHER)]).configuration
    merged = import_files(full, [routing_file()]).configuration.providers[0]
    assert (merged.key.name, [key.name for key in merged.more_keys]) == ("main", ["second", "3", "fourth"])
    assert import_files(full, [routing_file(keys=[])]).configuration.providers[0].more_keys == ()
    assert import_files(full, [routing_file()], prune=True).configuration.providers[0].more_keys == ()


def test_additional_keys_are_removed_if_the_origin_changes():
    """A provider's keys are entered for one origin (scheme, host, port) and must not be sent to another."""
    full = import_files(EMPTY, [routing_file(keys=FURTHER)]).configuration
    moved = import_files(full, [routing_file(endpoint="https://elsewhere.example/v1")]).configuration
    assert moved.providers[0].more_keys == ()


def test_seed_export_contains_the_first_key_and_lists_omissions():
    full = import_files(EMPTY, [routing_file(keys=FURTHER)]).configuration
    exported = export(full, FileFormat.ROUTING, Mode.SEED)
    assert '"keys"' not in exported.text
    assert "Provider “openai”: its further keys cannot be expressed." in exported.left_out


@pytest.mark.parametrize(
    ("keys", "field", "constraint"),
    [
        ("two", "providers[0].keys", "type"),
        (["sk-1"], "providers[0].keys[0]", "type"),
        ([{"name": "a"}], "providers[0].keys[0].apiKey", "required"),
        ([{"apiKey": "x${HOME}"}], "providers[0].keys[0].apiKey", "type"),
        ([{"apiKey": "", "name": "1"}], "providers[0].keys[0].name", "duplicate"),
        ([{"apiKey": ""}, {"apiKey": "", "name": "2"}], "providers[0].keys[1].name", "duplicate"),
        ([{"apiKey": "", "name": ["a"]}], "providers[0].keys[0].name", "type"),
        ([{"apiKey": "", "name": "a\nb"}], "providers[0].keys[0].name", "range"),
        ([{"apiKey": "", "enabled": "no"}], "providers[0].keys[0].enabled", "type"),
    ],
)
def test_invalid_additional_key_rejects_the_import_with_its_path(keys, field, constraint):
    outcome = import_files(EMPTY, [routing_file(keys=keys)])
    assert not outcome.accepted
    assert (field, constraint) in {(problem.field, problem.constraint) for problem in outcome.problems}


@pytest.mark.django_db(databases=["default", "logs"])
def test_restored_revision_has_equal_rows_and_decryptable_keys():
    applied = import_configuration(ADA, [routing_file(keys=FURTHER)])
    before = rows.read()
    assert [key.kind for key in before.providers[0].keys] == [KeyKind.STORED, KeyKind.STORED, KeyKind.ENV, KeyKind.ENV]
    import_configuration(ADA, [routing_file(keys=[])])
    assert Provider.objects.get().more_keys.count() == 0
    newest = Revision.objects.first()
    assert [change["field"] for change in newest.changes if change["field"] != "extra.keys"] == [
        f"more_keys[{name}]" if name == '"3"' else f"more_keys.{name}" for name in ("second", '"3"', "fourth")
    ]
    restore(ADA, applied.revision)
    assert rows.read() == before
    second = Provider.objects.get().more_keys.get(name="second")
    assert open_key(second.stored_key, "https://api.openai.com/v1") == SECRETS[1]
    assert StoredKey.objects.count() == 2
    stored = json.dumps([newest.snapshot, newest.changes, Revision.objects.last().snapshot])
    assert not any(secret in stored for secret in SECRETS)


@pytest.mark.django_db(databases=["default", "logs"])
def test_only_usable_keys_are_in_the_pool(monkeypatch):
    monkeypatch.setenv("LLM_PROVIDER_OPENAI_API_KEY_9", SECRETS[0])
    keys = [*FURTHER, {"name": "same", "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY_9}"}]
    import_configuration(ADA, [routing_file(keys=keys)])
    provider_keys = snapshot.build().provider_keys["openai"]
    assert [key.name for key in provider_keys.every] == ["1", "second", "3", "fourth", "same"]
    assert [key.name for key in provider_keys.pool] == ["1", "second"]
    assert provider_keys.first.value == SECRETS[0]
    import_configuration(ADA, [routing_file(keyEnabled=False, keys=FURTHER)])
    provider_keys = snapshot.build().provider_keys["openai"]
    assert (provider_keys.pool, provider_keys.first.value) == ((), SECRETS[1])
    import_configuration(ADA, [routing_file(keyEnabled=False, keys=[])])
    assert str(snapshot.build().keys["openai"].reason) == "openai has no key that is enabled."
    assert not any(secret in repr(snapshot.build()) for secret in SECRETS)
