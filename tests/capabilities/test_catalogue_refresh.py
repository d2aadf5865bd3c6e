"""The catalogue is refreshed from uploaded files and providers' own model lists. Other files are rejected."""

from __future__ import annotations

import gzip
import json
from datetime import date
from typing import Any

import pytest

from capabilities.core.providers.catalogue import Catalogue, FactVerdict, default_catalogue, list_host
from capabilities.core.providers.catalogue.document import CatalogueDocument, SourceNote, build_document, to_json
from capabilities.core.providers.catalogue.judgement import Statement
from capabilities.core.providers.catalogue.refreshing import (
    MAX_CATALOGUE_BYTES,
    EditionChange,
    FactChange,
    UnreadableCatalogueError,
    compare_editions,
    read_edition,
    read_own_list,
)
from capabilities.core.providers.catalogue.sources import read_provider_list

TODAY = date(2026, 11, 22)
LITELLM, MODELS_DEV = (
    SourceNote("LiteLLM", "1", "2026-01-02", "MIT"),
    SourceNote("models.dev", "2", "2026-01-03", "MIT"),
)
BASE = build_document(
    [
        (LITELLM, {"openai": {"gpt-a": Statement("v", "a"), "gpt-b": Statement("v")}}),
        (MODELS_DEV, {"openai": {"gpt-a": Statement("v", "a")}}),
    ],
    [
        (SourceNote("OpenAI SDK", "3", "2026-01-01"), {"openai": {"gpt-b": date(2027, 1, 1)}}),
        (LITELLM, {"openai": {"gpt-b": date(2027, 2, 1)}}),
    ],
)
API = {
    "openai": {
        "models": {
            "gpt-a": {"modalities": {"input": ["text"], "output": ["text"]}, "limit": {"context": 500}},
            "gpt-c": {"modalities": {"input": ["text", "audio"], "output": ["text"]}},
        }
    }
}
MAP = {
    "sample_spec": {"mode": "one of: chat"},
    "gpt-a": {
        "mode": "chat",
        "litellm_provider": "openai",
        "supports_vision": False,
        "deprecation_date": "2026-12-24",
    },
}


def load_catalogue(document: CatalogueDocument) -> Catalogue:
    return Catalogue(document, {"source": "p", "checkedOn": "2026-01-01", "patterns": []})


def verdict(document: CatalogueDocument, model: str, name: str) -> FactVerdict:
    entry = load_catalogue(document).lookup("openai", model)
    assert entry is not None
    return entry.facts["input", name].verdict


def test_uploaded_models_dev_list_replaces_only_models_dev_statements() -> None:
    new = read_edition(json.dumps(API).encode(), BASE, TODAY)
    assert [note.label for note in new.sources] == ["LiteLLM 1", "models.dev 2026-11-22"]
    assert verdict(new, "gpt-a", "vision") is FactVerdict.CONTESTED
    assert verdict(new, "gpt-b", "vision") is FactVerdict.ONE_SOURCE
    assert new.ends == BASE.ends


def test_uploaded_litellm_map_replaces_only_litellm_statements_and_dates() -> None:
    new = read_edition(json.dumps(MAP).encode(), BASE, TODAY)
    assert [note.label for note in new.sources] == ["LiteLLM 2026-11-22", "models.dev 2"]
    end, sdk = (load_catalogue(new).retirement("openai", name) for name in ("gpt-a", "gpt-b"))
    assert (end.day, end.source) == (date(2026, 12, 24), "LiteLLM 2026-11-22")  # type: ignore[union-attr]
    assert (sdk.day, sdk.others) == (date(2027, 1, 1), ())  # type: ignore[union-attr]


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())], ids=["plain", "packed"])
def test_uploaded_build_file_replaces_the_whole_catalogue(pack: Any) -> None:
    shipped = to_json(default_catalogue().document)
    assert to_json(read_edition(pack(shipped), BASE, TODAY)) == shipped


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "not JSON"),
        (b"\x1f\x8bnot gzip at all", "damaged"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "known form"),
        (b'{"providers": []}', "known form"),
        (b'{"openai": {"models": {}}}', "known form"),
        (b'{"gpt": {"mode": "chat"}}', "known form"),
        (b'{"format": 2, "models": {}}', "damaged"),
        (b'{"format": 1, "models": {}, "sources": [], "origins": [], "ends": {}}', "damaged"),
        (to_json(BASE).replace("v-a", "v-?").encode(), "damaged"),
        (to_json(BASE).replace("2026-01-02", "soon").encode(), "damaged"),
        (to_json(BASE).replace('"v-a,,;v-a,,"', '"v-a,,"').encode(), "damaged"),
        (gzip.compress(b" " * (MAX_CATALOGUE_BYTES + 1)), "too large"),
    ],
)
def test_uploaded_file_that_is_no_catalogue_is_rejected_with_a_reason(data: bytes, error: str) -> None:
    with pytest.raises(UnreadableCatalogueError, match=error):
        read_edition(data, BASE, TODAY)


@pytest.mark.parametrize(
    ("entry", "statement", "ends"),
    [
        (
            {
                "id": "deepseek/deepseek-v4-flash",
                "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
                "supported_parameters": ["tools"],
                "context_length": 1000,
                "top_provider": {"max_completion_tokens": 10},
                "expiration_date": "2026-12-01",
            },
            Statement("vft", "adAs", "", 1000, 10),
            date(2026, 12, 1),
        ),
        (
            {
                "id": "claude-x",
                "capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}},
                "max_input_tokens": 200,
                "max_tokens": 20,
                "retires_at": "2026-11-30T00:00:00Z",
            },
            Statement("v", "f", "", 200, 20),
            date(2026, 11, 30),
        ),
        ({"id": "mistral-x", "capabilities": {"vision": False, "function_calling": True}}, Statement("t", "v"), None),
        ({"name": "models/gemini-x", "inputTokenLimit": 9, "outputTokenLimit": 3}, Statement("", "", "", 9, 3), None),
        ({"id": "gpt-x", "object": "model", "shutdown_date": "2027-01-14"}, Statement(), date(2027, 1, 14)),
    ],
    ids=["openrouter", "anthropic", "mistral", "gemini", "openai"],
)
def test_model_list_of_each_vendor_format_is_read(
    entry: dict[str, Any], statement: Statement, ends: date | None
) -> None:
    """Each vendor's list has its own fields. An absent field means neither yes nor no."""
    (listing,) = read_provider_list("host", [entry, {"id": "names-only"}, {"id": "text-embedding-9"}, "odd"])
    assert (listing.statement, listing.ends) == (statement, ends)


def test_provider_model_list_settles_contested_facts_for_its_host() -> None:
    contested = read_edition(json.dumps(API).encode(), BASE, TODAY)
    entries = [{"id": "gpt-a", "capabilities": {"vision": True}, "shutdown_date": "2026-12-11"}]
    new = read_own_list("ours", list_host("ours", "https://api.openai.com/v1"), entries, contested, TODAY)
    assert verdict(new, "gpt-a", "vision") is FactVerdict.AGREED
    end = load_catalogue(new).retirement("openai", "gpt-a")
    assert end is not None
    assert (end.day, end.source) == (date(2026, 12, 11), "ours 2026-11-22")


def test_model_list_from_an_unknown_host_applies_only_to_its_url() -> None:
    entries = [{"id": "house-model", "capabilities": {"vision": True}}]
    host = list_host("ours", "https://llm.example.org:8443/v1")
    catalogue = load_catalogue(read_own_list("ours", host, entries, BASE, TODAY))
    entry = catalogue.entry_at("ours", "https://llm.example.org:8443/v1", "house-model")
    assert entry is not None
    assert entry.capabilities.input == ("text", "vision")
    assert catalogue.entry_at("other", "https://other.example.org/v1", "house-model") is None


def test_provider_model_list_with_names_only_is_rejected() -> None:
    """Most OpenAI-compatible servers list only model names, which state no facts."""
    with pytest.raises(UnreadableCatalogueError, match="only lists model names"):
        read_own_list("ours", "openai", [{"id": "gpt-a"}], BASE, TODAY)


def test_catalogue_difference_lists_added_removed_and_changed_models() -> None:
    """A confirmed capability that becomes contested counts as a change."""
    change = compare_editions(BASE, read_edition(json.dumps(API).encode(), BASE, TODAY))
    assert change.added == (("openai", "gpt-c"),)
    assert change.removed == ()
    (row,) = change.changed
    assert (row.host, row.name, next(iter(row.cells))) == ("openai", "gpt-a", ("input", "vision"))
    assert compare_editions(BASE, BASE).empty


@pytest.mark.parametrize(
    "change",
    [
        EditionChange((("openai", "gpt-c"),), (), ()),
        EditionChange((), (("openai", "gpt-c"),), ()),
        EditionChange((), (), (FactChange("openai", "gpt-c", {}),)),
    ],
)
def test_catalogue_difference_with_one_kind_of_change_is_not_empty(change: EditionChange) -> None:
    assert not change.empty
