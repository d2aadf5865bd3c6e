"""Makes `models.json.gz` from a litellm wheel: `python -m capabilities.catalogue.build WHEEL CHECKED_ON`.

Not imported at run time. The same wheel and date give the same bytes. Only chat models that say something about their
capabilities are taken: a model that declares nothing stays unknown rather than becoming text only.
"""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("models.json.gz")
MAP = "litellm/model_prices_and_context_window_backup.json"
MODES = frozenset({"chat", "responses", "completion"})

LETTERS: Mapping[str, tuple[tuple[str, ...], tuple[str, str] | None]] = {
    "v": (("supports_vision", "supports_image_input"), ("supported_modalities", "image")),
    "a": (("supports_audio_input",), ("supported_modalities", "audio")),
    "d": (("supports_video_input",), ("supported_modalities", "video")),
    "f": (("supports_pdf_input",), None),
    "s": (("supports_response_schema", "supports_native_structured_output"), None),
    "t": (("supports_function_calling",), None),
    "A": (("supports_audio_output",), ("supported_output_modalities", "audio")),
}
"""For each letter of the extract: the flags that say it, and the modality that says it too."""

TELLING = frozenset(flag for flags, _ in LETTERS.values() for flag in flags) | {"supported_modalities"}


def main(wheel: str, checked_on: str) -> None:
    """Writes the extract beside this file and prints its size in bytes."""
    with zipfile.ZipFile(wheel) as archive:
        models = json.loads(archive.read(MAP))
    document = {
        "source": "litellm " + Path(wheel).name.split("-")[1],
        "checkedOn": date.fromisoformat(checked_on).isoformat(),
        "models": dict(sorted(rows(models))),
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    sys.stdout.write(f"{len(document['models'])} models, {TARGET.stat().st_size} bytes\n")


def rows(models: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """For each chat model that declares something: `[provider, letters, max input tokens, max output tokens]`."""
    for name, facts in models.items():
        if facts.get("mode") in MODES and TELLING & facts.keys():
            yield name, [facts.get("litellm_provider", ""), letters(facts), *limits(facts)]


def letters(facts: Mapping[str, Any]) -> str:
    """The letters that hold for a model."""
    return "".join(
        letter
        for letter, (flags, modality) in LETTERS.items()
        if any(facts.get(flag) is True for flag in flags)
        or (modality is not None and modality[1] in (facts.get(modality[0]) or ()))
    )


def limits(facts: Mapping[str, Any]) -> list[int | None]:
    """Tokens a model takes and gives; None where it is not a number."""
    found = (facts.get("max_input_tokens"), facts.get("max_output_tokens"))
    return [int(count) if isinstance(count, int | float) else None for count in found]


if __name__ == "__main__":
    main(*sys.argv[1:])
