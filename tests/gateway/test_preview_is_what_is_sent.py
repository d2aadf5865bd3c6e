"""A previewed payload is what is sent.

The payloads shown on the artifact's page, by the agents' API and on the page Simulate equal the upstream request byte
for byte. Files of many types go to five model services in OpenAI's protocol and to two in each other protocol, because
the capabilities of a service decide what it receives of a file, and each protocol encodes each form of delivery
differently.

The calls use the model `auto`, and the service is the candidate of the default route. The fault lab stores the
requests. Whole payloads are compared, including the language directive, after each file's data has been inserted in
place of `<N bytes>`. Inline files must arrive as the stored files do.

API, Simulate and upstream request are compared for every file and every service. The page and inline files are compared
for every file, and for every service with each kind of file in each form.
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client
from PIL import Image
from pypdf import PdfReader, PdfWriter

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import open_artifact
from capabilities.actors import SYSTEM
from capabilities.core.vocabulary import Kind
from capabilities.models import Provider, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.dispatch.preview import request_for
from routing_admin.dispatch.simulation import simulate
from routing_admin.models import TaskRoute
from routing_admin.upstream import process_upstream
from tests.artifacts.samples import SAMPLES
from tests.artifacts.stored_samples import READERS
from tests.cast import AgentProgram
from tests.gateway.asgi_caller import Call, headers
from tests.lab import Lab

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

PROTOCOLS = ("openai", "openai-responses", "anthropic", "gemini")
OTHERS = ("vision", "everything")
"""Names of the services in the protocols other than OpenAI's.

The first receives most files converted or as a description, and the second accepts every form.
"""
DIRECTIVE = "请使用中文回答。"
SIZE = re.compile(r"<(\d+) bytes>$")
REFERENCE = re.compile("工件ID: artifact:[a-z0-9]+\\\\n".encode())
TAG = re.compile(r"<[^>]*>")
SHOWN = re.compile(r'<pre id="payload-([^"]+)"[^>]*>(.*?)</pre>', re.DOTALL)


def picture(name: str, size: tuple[int, int]) -> bytes:
    data = io.BytesIO()
    Image.effect_noise(size, 60).save(data, name)
    return data.getvalue()


def multi_page_image(name: str) -> bytes:
    data = io.BytesIO()
    first, *further_images = (Image.effect_noise((60, 40), 20 * number) for number in range(1, 9))
    first.save(data, name, save_all=True, append_images=further_images)
    return data.getvalue()


def locked_pdf() -> bytes:
    writer = PdfWriter(PdfReader(io.BytesIO(picture("PDF", (60, 40)))))
    writer.encrypt("password", algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


MADE = {
    "long.txt": "一行字和 words\n".encode() * 20_000,
    "rotated.log": "今天的天气很好。\n".encode() * 50 + b"\xff\xfe\n",
    "long.log": "今天的天气很好。\n".encode() * 20_000 + b"\xff\xfe\n",
    "rotated.html": b"<!doctype html><p>" + "今天的天气很好。\n".encode() * 50 + b"\xff\xfe",
    "wide.png": picture("PNG", (9000, 4)),
    "scan.pdf": picture("PDF", (120, 90)),
    "pages.tiff": multi_page_image("TIFF"),
    "film.apng": multi_page_image("PNG"),
    "locked.pdf": locked_pdf(),
    "damaged.pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog",
}
"""Files made for this test.

They are a text that is truncated, texts with stray bytes, an image that is scaled down, and a document without text
that becomes page images.
"""

TAKEN_APART = {
    *("photo.bmp", "photo.avif", "scan.pcx", "wide.png", "scan.pdf", "report.pdf", "office.docx", "openpyxl.xlsx"),
    *("talk.pptx", "letter.rtf", "book.epub", "letter.ott", "mail.msg", "study.ipynb", "page.html", "mail.eml"),
    *("page.mht", "files.zip", "tool.jar", "log.gz", "log.bz2", "log.xz", "files.tar", "letter.xhtml"),
}
"""Samples of file types that are always or sometimes parsed in a separate process.

That takes time, so they are sent inline only to the service `everything`.
"""

WINDOW = {"contextTokens": 30_000}
"""A fixed context window, so that the test knows how much of the long text arrives."""

UNTOUCHED = {"photo.png", "photo.jpg", "photo.gif", "photo.webp"}


MANY = {Kind.TEXT: 4, Kind.OTHER: 2, Kind.AUDIO: 3, Kind.VIDEO: 3}
"""Maps kinds with many file types to n: this test uses every n-th type, and tests/artifacts reads them all.

One reason is that the gateway starts a process for each audio or video file to measure its duration.
"""


def files() -> dict[str, bytes]:
    """Return one sample of each type. For images and documents, return only the types named in the constants above."""
    types: dict[str, tuple[str, bytes]] = {}
    kinds: dict[Kind, list[str]] = {kind: [] for kind in Kind}
    for sample in SAMPLES:
        named = sample.name in TAKEN_APART | UNTOUCHED
        if sample.mime not in types and (named or sample.kind not in (Kind.IMAGE, Kind.DOCUMENT)):
            types[sample.mime] = (sample.name, sample.data)
            kinds[sample.kind].append(sample.name)
    rest = {name for kind, names in kinds.items() for name in names[:: MANY.get(kind, 1)]} | TAKEN_APART
    return {name: data for name, data in types.values() if name in rest} | MADE


FILES = files()


@dataclass(frozen=True)
class ReaderService:
    protocol: str
    reader: str

    @property
    def service(self) -> str:
        return f"{self.protocol}-{self.reader.replace('+', '-')}"

    def use_as_default(self) -> None:
        """Make this service the only candidate of the default route. The route has its own parameters."""
        TaskRoute.objects.filter(task_type="default").update(temperature=0.3, max_tokens=77)
        route = TaskRoute.objects.get(task_type="default")
        route.candidates.filter(position__gt=1).delete()
        route.candidates.update(provider=Provider.objects.get(name=f"lab-{self.protocol}"), model=self.service)
        snapshot.refresh()


@dataclass
class PreviewedFile:
    """A file of the text agent, and its previewed payload for each service."""

    name: str
    data: bytes
    row: Artifact
    payloads: Mapping[str, Any] = field(default_factory=dict)
    outcomes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Each service's delivery outcome, and what the service's card shows about it."""
    only_converted: frozenset[str] = frozenset()
    """The services that receive the whole file, but only in a converted form."""
    native: frozenset[str] = frozenset()

    def arrives_inline(self, body: bytes, reader_service: ReaderService) -> bytes:
        """Return what must arrive for the inline file, given what arrives for the reference.

        An image or a scan that is converted completely is not stored first, so its text contains no reference.
        """
        return REFERENCE.sub(b"", body) if reader_service.service in self.only_converted else body

    def reference(self) -> dict[str, Any]:
        if self.row.kind == Kind.IMAGE:
            return {"type": "image_url", "image_url": {"url": self.row.ref}}
        return {"type": "file", "file": {"file_id": self.row.ref}}

    def inline(self, reader_service: ReaderService) -> dict[str, Any]:
        """Return the file as an inline part.

        An image that is sent unchanged is an `image_url`, which needs no filename.
        """
        url = f"data:{self.row.mime_type};base64,{base64.b64encode(self.data).decode()}"
        if self.row.kind == Kind.IMAGE and reader_service.service in self.native:
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": self.name, "file_data": url}}


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def put_back(shown: Any, sent: Any, data: bytes) -> Any:
    """Return the payload with each `<N bytes>` replaced by the data that was sent: the file or a converted image."""
    if isinstance(shown, str) and (elided := SIZE.search(shown)):
        lead = shown[: elided.start()]
        arrived = base64.b64decode(sent.removeprefix(lead), validate=True)
        assert sent.startswith(lead)
        assert len(arrived) == int(elided[1])
        assert arrived == data or Image.open(io.BytesIO(arrived)).format in ("PNG", "JPEG", "WEBP")
        return sent
    if isinstance(shown, dict):
        return {key: put_back(value, sent[key], data) for key, value in shown.items()}
    if isinstance(shown, list):
        return [put_back(shown_item, sent_item, data) for shown_item, sent_item in zip(shown, sent, strict=True)]
    return shown


def payloads_on_page(admin: Client, artifact: str, services: Sequence[ReaderService]) -> dict[str, bytes]:
    """Return the payload that an artifact's page shows for each service, encoded as for the provider."""
    opened = {"fragment": "card", "language": "zh"}  # The language of calls that do not specify one.
    cards = [
        admin.get(f"/artifacts/{artifact}/", {"service": reader_service.service, **opened})
        for reader_service in services
    ]
    text = "".join(card.content.decode() for card in cards)
    return {name: compact(json.loads(html.unescape(TAG.sub("", shown)))) for name, shown in SHOWN.findall(text)}


async def send(key: str, parts: Sequence[Mapping[str, Any]], lab: Lab) -> list[bytes]:
    arrived = []
    for part in parts:
        body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": [part]}]}).encode()
        call = await Call([body], headers(key, len(body))).run()
        assert call.status == 200, call.answer
        arrived.append(lab.requests.pop().body)
    await process_upstream().close()
    return arrived


@pytest.fixture
def services(demo: None, lab: Lab) -> list[ReaderService]:
    """Create services at a provider for each protocol of the fault lab. They replace the demo's services."""
    Service.objects.update(enabled=False)
    made = []
    for protocol in PROTOCOLS:
        Provider.objects.create(
            name=f"lab-{protocol}", protocol=protocol, endpoint=lab.url(protocol), default_model="m", key_source="none"
        )
        made += [ReaderService(protocol, reader) for reader in (READERS if protocol == "openai" else OTHERS)]
    for reader_service in made:
        provider = Provider.objects.get(name=f"lab-{reader_service.protocol}")
        service = Service.objects.create(
            service_id=reader_service.service,
            name=reader_service.service,
            provider=provider,
            model=reader_service.service,
            limits=WINDOW if reader_service.reader == "everything" else {},
        )
        for at, name in enumerate(READERS[reader_service.reader].input):
            ServiceCapability.objects.create(service=service, side="input", name=name, position=at)
        ServiceCapability.objects.create(service=service, side="output", name="text")
    return made


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture
def artifacts(services: list[ReaderService], text_agent: AgentProgram) -> list[PreviewedFile]:
    services[0].use_as_default()
    found = []
    for name, data in FILES.items():
        row = store_bytes(SYSTEM, data, owner="text-agent", filename=name)
        shown = text_agent.get(f"/artifacts/{row.ref}/preview").json()["deliveries"]
        whole = {
            delivery["serviceId"]
            for delivery in shown
            if (delivery["outcome"], delivery["shown"]) == ("converted", "converted")
        }
        payloads = {delivery["serviceId"]: delivery["payload"] for delivery in shown}
        native = {delivery["serviceId"] for delivery in shown if delivery["outcome"] == "native"}
        outcomes = {delivery["serviceId"]: (delivery["outcome"], delivery["shown"]) for delivery in shown}
        found.append(PreviewedFile(name, data, row, payloads, outcomes, frozenset(whole), frozenset(native)))
    return found


def choose_services(
    artifacts: Sequence[PreviewedFile], services: Sequence[ReaderService]
) -> Iterator[tuple[PreviewedFile, list[ReaderService]]]:
    """Yield each file with the services whose cards are opened.

    For each file, these are the next service in rotation, and each service that has not yet received this kind of file
    in this form.
    """
    seen = set()
    for number, artifact in enumerate(artifacts):
        opened = [services[number % len(services)]]
        for reader_service in services:
            shape = (reader_service.service, artifact.row.kind, artifact.outcomes[reader_service.service])
            if shape not in seen and reader_service not in opened:
                opened.append(reader_service)
            if reader_service in opened:
                seen.add(shape)
        yield artifact, opened


def test_page_preview_simulation_and_sent_request_agree_for_every_file(
    artifacts: list[PreviewedFile], services: list[ReaderService], text_agent: AgentProgram, admin: Client, lab: Lab
) -> None:
    """Whole payloads agree for each service, for a reference and for an inline file."""
    assert len(artifacts) >= 100
    chosen = list(choose_services(artifacts, services))
    for artifact, opened in chosen:
        assert payloads_on_page(admin, artifact.row.pk, opened) == {
            reader_service.service: compact(artifact.payloads[reader_service.service]) for reader_service in opened
        }, artifact.name
    for reader_service in services:
        reader_service.use_as_default()
        route = snapshot.current().configuration.route("default")
        assert route is not None
        for artifact in artifacts:
            chat = request_for(open_artifact(artifact.row))
            simulated = simulate(snapshot.current(), route, chat, agent="text-agent").stops[0].payload
            assert compact(simulated) == compact(artifact.payloads[reader_service.service]), (
                artifact.name,
                reader_service,
            )
        arrived = asyncio.run(send(text_agent.key, [artifact.reference() for artifact in artifacts], lab))
        for artifact, body in zip(artifacts, arrived, strict=True):
            assert DIRECTIVE in body.decode()
            shown = put_back(artifact.payloads[reader_service.service], json.loads(body), artifact.data)
            assert compact(shown) == body, (artifact.name, reader_service)
        reads_everything = reader_service.reader == "everything"
        inline_files = [
            artifact
            for artifact, opened in chosen
            if reads_everything or (reader_service in opened and artifact.name not in TAKEN_APART)
        ]
        bodies = {artifact.name: body for artifact, body in zip(artifacts, arrived, strict=True)}
        inline_bodies = asyncio.run(
            send(text_agent.key, [artifact.inline(reader_service) for artifact in inline_files], lab)
        )
        for artifact, body in zip(inline_files, inline_bodies, strict=True):
            assert body == artifact.arrives_inline(bodies[artifact.name], reader_service), (
                artifact.name,
                reader_service,
            )
