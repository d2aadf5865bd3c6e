"""Presets and the demo name only models that were served when the catalogue was built."""

from __future__ import annotations

import pytest

from capabilities.core.providers.catalogue import default_catalogue
from capabilities.core.providers.hosts.row import HostPreset
from capabilities.core.providers.presets import PRESETS
from routing_admin.console.demo.load import FILES
from routing_admin.core.configuration.removals import list_ends
from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.files.importing import import_files

BUILT = default_catalogue().document.checked_on
"""The date of the catalogue's newest source. A model that retires later was served when the catalogue was built."""
UNLISTED = {"ernie-4.5-turbo-128k", "hunyuan-turbos-latest"}
"""Models that no catalogue source lists: one from Baidu, and one from Tencent at its old base URL."""


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_presets_offer_only_models_served_when_the_catalogue_was_built(preset: HostPreset) -> None:
    for model in preset.models:
        retirement = default_catalogue().retirement_at(preset.name, preset.base_url, model)
        assert retirement is None or retirement.day > BUILT, retirement
        assert model in UNLISTED or default_catalogue().entry_at(preset.name, preset.base_url, model), model


def test_demo_names_only_models_served_when_the_catalogue_was_built() -> None:
    outcome = import_files(EMPTY, [path.read_bytes() for path in FILES])
    assert outcome.configuration.routes
    assert [end for end in list_ends(outcome.configuration, default_catalogue()) if end.retirement.day <= BUILT] == []
