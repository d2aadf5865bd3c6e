"""An imported literal key is recognized when it is imported again."""

from __future__ import annotations

import json

import pytest

from capabilities.actors import Actor
from capabilities.models import StoredKey
from routing_admin.console.exchange.actions import import_configuration, preview_import
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
KEY = "sk-live-0123456789abcdef"
FILE = json.dumps(
    {
        "providers": [
            {
                "providerName": "deepseek",
                "apiKey": KEY,
                "endpoint": "https://api.deepseek.com/chat/completions",
                "defaultModel": "deepseek-chat",
            }
        ],
        "routing": {"default": {"provider": "deepseek"}},
    }
)


def test_importing_the_same_literal_key_twice_creates_no_second_revision() -> None:
    assert import_configuration(ADA, [FILE]).revision is not None
    assert preview_import([FILE]).changes == ()
    assert import_configuration(ADA, [FILE]).revision is None
    assert (Revision.objects.count(), StoredKey.objects.count()) == (1, 1)


def test_different_literal_key_for_the_same_origin_is_a_change() -> None:
    import_configuration(ADA, [FILE])
    import_configuration(ADA, [FILE.replace(KEY, "sk-live-another-key-0000")])
    newest = Revision.objects.first()
    assert newest is not None
    assert [change["field"] for change in newest.changes] == ["key"]
    assert "another-key" not in json.dumps(newest.snapshot)
