"""What a model reads according to the catalogue, offline: "what does gpt-4o read?" with source and date.

A model's capabilities differ from host to host, so a row of the asked provider comes first, then the model's own
vendor, then what all hosts that list it agree on, then a pattern of names. Whatever none of them knows stays None:
unknown is shown as unknown and treated as text only. The data lie in `capabilities/catalogue/`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from capabilities.core.providers.presets import preset_for_endpoint
from capabilities.core.vocabulary import Capabilities

INPUTS = {"v": "vision", "a": "audio", "d": "video", "f": "file"}
OUTPUTS = {"A": "audio", "s": "structured_output", "t": "tool_calling"}
"""The letters of `models.json.gz` (see its `build.py`), in the order capabilities are listed."""

PROVIDERS: Sequence[tuple[str, str]] = (
    ("aihubmix", "aihubmix"),
    ("azure", "azure"),
    ("bedrock", "bedrock"),
    ("amazonaws", "bedrock"),
    ("vertex", "vertex_ai"),
    ("aiplatform", "vertex_ai"),
    ("gemini", "gemini"),
    ("google", "gemini"),
    ("generativelanguage", "gemini"),
    ("anthropic", "anthropic"),
    ("claude", "anthropic"),
    ("openai", "openai"),
    ("deepseek", "deepseek"),
    ("dashscope", "dashscope"),
    ("aliyun", "dashscope"),
    ("qwen", "dashscope"),
    ("bigmodel", "zai"),
    ("zhipu", "zai"),
    ("api.z.ai", "zai"),
    ("zai", "zai"),
    ("moonshot", "moonshot"),
    ("kimi", "moonshot"),
    ("volces", "volcengine"),
    ("volcengine", "volcengine"),
    ("doubao", "volcengine"),
    ("hunyuan", "tencent"),
    ("tencent", "tencent"),
    ("minimax", "minimax"),
    ("mistral", "mistral"),
    ("api.x.ai", "xai"),
    ("xai", "xai"),
    ("grok", "xai"),
    ("groq", "groq"),
    ("together", "together_ai"),
    ("fireworks", "fireworks_ai"),
    ("deepinfra", "deepinfra"),
    ("novita", "novita"),
    ("perplexity", "perplexity"),
    ("cerebras", "cerebras"),
    ("sambanova", "sambanova"),
    ("nebius", "nebius"),
    ("ollama", "ollama"),
    ("cohere", "cohere"),
    ("databricks", "databricks"),
)
"""Which provider of the catalogue a word in a provider's name, preset or host means; the first one found counts."""

VENDORS = frozenset(
    {
        "openai",
        "anthropic",
        "gemini",
        "deepseek",
        "dashscope",
        "zai",
        "moonshot",
        "volcengine",
        "tencent",
        "minimax",
        "mistral",
        "xai",
        "meta_llama",
    }
)
"""Those who make the models they serve; a name without a host in front is a vendor's, too."""

VERSION = re.compile(r"(?:[:@].*|-latest|-\d{8}|-\d{6}|-\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What the catalogue says of a model: limits in tokens, None where it names none.

    `matched_by` is provider, vendor, hosts (what all of them agree on) or pattern; `matched` the name or pattern.
    """

    capabilities: Capabilities
    max_input_tokens: int | None
    max_output_tokens: int | None
    source: str
    checked_on: date
    matched_by: str
    matched: str


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """One model at one host, as the extract has it."""

    name: str
    provider: str
    letters: str
    max_input_tokens: int | None
    max_output_tokens: int | None


class Catalogue:
    """The extract and the patterns, ready to be asked; `models` and `patterns` are the two parsed documents."""

    def __init__(self, models: Mapping[str, Any], patterns: Mapping[str, Any]) -> None:
        self._source, self._checked_on = models["source"], date.fromisoformat(models["checkedOn"])
        self._patterns = patterns
        self._rows: dict[str, list[CatalogueRow]] = {}
        for name, facts in models["models"].items():
            self._rows.setdefault(_tail(name), []).append(CatalogueRow(name, *facts))

    def lookup(self, provider_hint: str | None, model: str) -> CatalogueEntry | None:
        """What is known of a model at a provider (its name, preset or URL; None for any); None when nothing is."""
        provider = provider_of(provider_hint)
        for name in names_of(model):
            for matched_by, rows in _choices(self._rows.get(name, ()), provider):
                if rows:
                    return self._agreed(rows, matched_by)
        return self._pattern(_tail(model))

    def _agreed(self, rows: Sequence[CatalogueRow], matched_by: str) -> CatalogueEntry:
        shared = set.intersection(*(set(row.letters) for row in rows))
        return CatalogueEntry(
            Capabilities(_words(INPUTS, shared), _words(OUTPUTS, shared)),
            min((row.max_input_tokens for row in rows if row.max_input_tokens), default=None),
            min((row.max_output_tokens for row in rows if row.max_output_tokens), default=None),
            self._source,
            self._checked_on,
            matched_by,
            rows[0].name,
        )

    def _pattern(self, name: str) -> CatalogueEntry | None:
        if any(fnmatchcase(name, other) for other in self._patterns.get("notChat", ())):
            return None  # `gpt-4o-mini-tts` is no gpt-4o: speech, embeddings and pictures are made by other models
        for entry in self._patterns["patterns"]:
            if fnmatchcase(name, entry["pattern"]):
                return CatalogueEntry(
                    Capabilities(tuple(entry["input"]), tuple(entry["output"])),
                    entry.get("maxInputTokens"),
                    entry.get("maxOutputTokens"),
                    self._patterns["source"],
                    date.fromisoformat(self._patterns["checkedOn"]),
                    "pattern",
                    entry["pattern"],
                )
        return None


def provider_of(hint: str | None) -> str | None:
    """The catalogue's name of the provider that a name, preset or URL speaks of; None when it knows none."""
    words = (hint or "").lower()
    return next((provider for word, provider in PROVIDERS if word in words), None)


def names_of(model: str) -> Iterator[str]:
    """The names to look for: the model's without its path, then without tag, date or `-latest`."""
    name = _tail(model)
    while name:
        yield name
        shorter = VERSION.sub("", name)
        name = "" if shorter == name else shorter


def _tail(name: str) -> str:
    return name.rsplit("/", 1)[-1].strip().lower()


def _choices(rows: Iterable[CatalogueRow], provider: str | None) -> Iterator[tuple[str, list[CatalogueRow]]]:
    found = list(rows)
    yield "provider", [row for row in found if provider and _is(row.provider, provider)]
    yield "vendor", [row for row in found if row.provider in VENDORS]
    yield "vendor", [row for row in found if "/" not in row.name]
    yield "hosts", found


def _is(name: str, provider: str) -> bool:
    return name == provider or name.startswith((f"{provider}_", f"{provider}-"))


def _words(letters: Mapping[str, str], shared: set[str]) -> tuple[str, ...]:
    return ("text", *(word for letter, word in letters.items() if letter in shared))


@cache
def default_catalogue() -> Catalogue:
    """The catalogue that comes with the project, read at the first question and kept."""
    folder = files("capabilities.catalogue")
    models = gzip.decompress(folder.joinpath("models.json.gz").read_bytes())
    return Catalogue(json.loads(models), json.loads(folder.joinpath("patterns.json").read_text("utf-8")))


def lookup(provider_hint: str | None, model: str) -> CatalogueEntry | None:
    """What the project's own catalogue knows of a model at a provider; None when nothing is known."""
    return default_catalogue().lookup(provider_hint, model)


def entry_at(provider: str, endpoint: str, model: str) -> CatalogueEntry | None:
    """What is known of a model at a provider of that name; its host says more than the name people gave it."""
    preset = preset_for_endpoint(endpoint)
    return lookup(preset.name if preset else f"{provider} {endpoint}", model)
