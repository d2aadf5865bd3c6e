"""Artifacts of many kinds: files from `tests/artifacts/files` under realistic names, and generated files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from artifacts.library import correct_artifact, delete_artifacts, store_bytes
from artifacts.models import Artifact
from capabilities.actors import Actor
from capabilities.core.describing.prompt import description_key
from routing_admin.dispatch.descriptions.store import DescriptionOutcome, store_description
from tests.artifacts.samples import build_zip, docx, mp3, pdf, wav
from tests.ui.large import WIDE
from tests.ui.large.configuration import DEMO, Planned
from tests.ui.large.people import Event, person

SAMPLES = Path(__file__).parents[2] / "artifacts" / "files"
SUBJECTS = (
    *("invoice", "contract", "quarterly-report", "floor-plan", "call-recording", "minutes", "price-list", "photo"),
    *("receipt", "slides", "export", "crash-log", "survey", "合同", "发票", "会议纪要", "报价单", "现场照片"),
)
TYPES = ("", "", "attachment", "source", "scan", "result")
WORDS = "The parties agree on the delivery of the goods listed below. 双方同意按下列清单交货。 "


@dataclass(frozen=True)
class FileToStore:
    """A file to store. `declared` is the MIME type that the uploader states."""

    name: str
    data: bytes
    declared: str = ""


def picture(width: int, height: int, seed: int) -> bytes:
    """Return a PNG image with a colour gradient."""
    base = Image.linear_gradient("L").resize((width, height))
    bands = (base.rotate(90 * (seed % 4)).resize((width, height)), base, base.point(lambda value: 255 - value))
    buffer = io.BytesIO()
    Image.merge("RGB", bands).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def generate_files(rng: Random) -> Iterator[FileToStore]:
    """Yield an endless sequence of realistic files. The first twelve include every kind of file."""
    number = 0
    while True:
        number += 1
        subject = rng.choice(SUBJECTS)
        name = f"{subject}-2026-{rng.randrange(1, 12):02}-{number:03}"
        pages = [
            f"Page {page} of {name.encode('ascii', 'replace').decode()}" for page in range(1, rng.randrange(2, 30))
        ]
        rows = "".join(
            f"{row},{rng.randrange(9999) / 100},{rng.choice('ABC')}\n" for row in range(rng.randrange(5, 900))
        )
        sizes = ((320, 200), (800, 600), (1024, 1024), (1920, 1080), (3000, 2000))
        sound = wav(rng.uniform(0.5, 20))
        yield from (
            FileToStore(f"{name}.pdf", pdf(*pages), "application/pdf"),
            FileToStore(f"{name}.png", picture(*sizes[number % len(sizes)], number), "image/png"),
            FileToStore(f"{name}.csv", f"id,amount,class\n{rows}".encode(), "text/csv"),
            FileToStore(f"{name}.docx", docx(WORDS * 3, WORDS, table=(("Item", "Price"), ("A", "12.50")))),
            FileToStore(f"{name}.txt", (WORDS * rng.randrange(1, 400)).encode(), "text/plain"),
            FileToStore(f"{name}.wav", sound, "audio/wav"),
            FileToStore(f"{name}.json", json.dumps({"id": number, "text": WORDS}).encode(), "application/json"),
            FileToStore(f"{name}.mp3", mp3(rng.randrange(40, 900))),
            FileToStore(f"{name}.zip", build_zip({f"{name}.txt": WORDS.encode(), "data.csv": rows.encode()})),
            FileToStore(f"{name}.md", f"# {name}\n\n{WORDS * 4}".encode(), "text/plain"),
            FileToStore(f"{name}.gb.txt", ("现场检查记录，编号" + WORDS[60:] * 8).encode("gb18030", "replace")),
            FileToStore(f"{name}", picture(640, 480, number), "application/octet-stream"),
        )


def generate_large_files() -> Iterator[FileToStore]:
    yield FileToStore("full-export-2025.csv", b"id,name,amount\n" + b"1042,Acme GmbH & Co. KG,1882.50\n" * 380_000)
    yield FileToStore("archive-of-calls.wav", wav(600))
    yield FileToStore("drone-survey.png", picture(7000, 5000, 3))


def generate_wide_files() -> Iterator[FileToStore]:
    """Yield files of several kinds with names that offer no place for a line break. The last one is a long and wide
    table.
    """
    yield FileToStore(f"{WIDE}.png", picture(1200, 800, 2))
    yield FileToStore(f"{WIDE}.wav", wav(1.0))
    yield FileToStore(f"{WIDE}.pdf", pdf(WIDE, "second page"))
    yield FileToStore(f"{WIDE}.webm", (SAMPLES / "film.webm").read_bytes())
    yield FileToStore(f"{WIDE}.bin", bytes(range(256)) * 9)
    yield FileToStore(f"{WIDE}.txt", (WIDE + "\n").encode() * 30)
    yield FileToStore(f"{WIDE}.csv", ("1,名称," + WIDE + ",3.1415\n").encode() * 20_000, "text/csv")


class Library:
    """The installation's artifacts. Agents store them during the simulated time."""

    def __init__(self, planned: Planned, now: datetime) -> None:
        self._planned, self._now = planned, now
        self._rng = Random(f"artifacts {planned.seed}")
        self.stored: list[str] = []

    def events(self) -> Iterator[Event]:
        samples = [FileToStore(self._realistic_name(path), path.read_bytes()) for path in sorted(SAMPLES.iterdir())]
        self._rng.shuffle(samples)
        made, wide, large = generate_files(self._rng), [*generate_wide_files()], [*generate_large_files()]
        count = self._planned.size.artifacts - DEMO["artifacts"] - len(wide) - len(large)
        # Three of five files are typical of requests. The others show how many formats there are.
        plain = [samples.pop() if at % 5 > 2 and samples else next(made) for at in range(count)]
        files = [*large, *plain, *wide]
        agents = [plan.spec.id for plan in self._planned.agents if plan.keys][1:]
        begin = self._now - timedelta(days=34)
        for at, file in enumerate(files):
            moment = begin + (self._now - timedelta(minutes=30) - begin) * ((at + 1) / len(files))
            owner = "" if at % 9 == 4 else agents[at % len(agents)]
            yield Event(moment, partial(self._store, at, file, owner))
        yield Event(self._now - timedelta(days=2), self._describe)
        yield Event(self._now - timedelta(days=1, hours=3), self._delete_and_correct)

    def _realistic_name(self, path: Path) -> str:
        ending = "".join(path.suffixes)
        return f"{self._rng.choice(SUBJECTS)}-{self._rng.randrange(1000)}{ending}"

    def _store(self, at: int, file: FileToStore, owner: str) -> None:
        actor = Actor("agent", owner) if owner else person("aisha.khan")
        # Some artifacts are kept only for a few days, so most of these have expired by now.
        expires_in = 86_400.0 * (at % 5 + 1) if at % 7 == 3 and WIDE not in file.name else None
        metadata: dict[str, Any] = {"purpose": "user_data"} if at % 2 else {"ticket": f"ACME-{1000 + at}"}
        row = store_bytes(
            actor,
            file.data,
            filename=file.name,
            declared=file.declared,
            owner=owner,
            uploaded_by="" if owner else actor.name,
            type=TYPES[at % len(TYPES)],
            metadata=metadata if at % 3 else {},
            visibility="private" if owner and at % 8 == 5 else "shared",
            expires_in=expires_in,
            artifact_id=f"{self._rng.getrandbits(128):032x}",
        )
        self.stored.append(row.pk)

    def _describe(self) -> None:
        describers = self._planned.routes[1].candidates
        for number, row in enumerate(Artifact.objects.living().filter(kind__in=("image", "audio", "document"))[:40]):
            describer = describers[number % len(describers)]
            words = f"A {row.kind} named {row.filename[:40]}: " + "it shows the ground floor with two entrances. " * 4
            key = description_key(row.sha256, f"{describer.provider}/{describer.model}", "en", None)
            fault = "http_503" if number % 13 == 7 else ""
            outcome = DescriptionOutcome(
                describer=f"{describer.provider}/{describer.model}",
                words="" if fault else words,
                fault=fault,
                prompt_tokens=900 + number,
                completion_tokens=None if fault else 70 + number,
            )
            store_description(key, f"conversation-{number}", outcome)

    def _delete_and_correct(self) -> None:
        rows = [row for row in Artifact.objects.living() if WIDE not in row.filename]
        delete_artifacts(person("aisha.khan"), [row.pk for row in rows[10::17]])
        textual = [row for row in rows if row.mime_type == "text/plain" and row not in rows[10::17]]
        for row in textual[:4]:
            correct_artifact(person("王芳"), row, mime_type="text/markdown")
