"""What is previewed is what is sent: the page, the agents' API, Simulate and the wire, byte for byte.

Files of many types go to five readers in each vendor's protocol, as calls of `auto` whose default route leads there.
The lab keeps what arrives; a payload is compared whole, its language directive included, with each file's data put
back where it says `<N bytes>`. The same files inside the request arrive as the stored ones do.
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

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import open_artifact
from capabilities.acts import SYSTEM
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
DIRECTIVE = "请使用中文回答。"
SIZE = re.compile(r"<(\d+) bytes>$")
REFERENCE = re.compile("工件ID: artifact:[a-z0-9]+\\\\n".encode())
TAG = re.compile(r"<[^>]*>")
SHOWN = re.compile(r'<pre id="payload-([^"]+)"[^>]*>(.*?)</pre>', re.DOTALL)


def picture(name: str, size: tuple[int, int]) -> bytes:
    data = io.BytesIO()
    Image.effect_noise(size, 60).save(data, name)
    return data.getvalue()


MADE = {
    "long.txt": "一行字和 words\n".encode() * 20_000,
    "wide.png": picture("PNG", (9000, 4)),
    "scan.pdf": picture("PDF", (120, 90)),
}
"""What is cut, scaled, and drawn for want of words."""

TAKEN_APART = {
    *("photo.bmp", "photo.avif", "scan.pcx", "wide.png", "scan.pdf", "report.pdf", "office.docx", "openpyxl.xlsx"),
    *("talk.pptx", "letter.rtf", "book.epub", "letter.ott", "mail.msg", "study.ipynb", "page.html", "mail.eml"),
    *("page.mht", "files.zip", "tool.jar", "log.gz", "log.bz2", "log.xz", "files.tar", "letter.xhtml"),
}
"""What a process of its own takes apart, or may; inside requests these go to one reader of each protocol."""

UNTOUCHED = {"photo.png", "photo.jpg", "photo.gif", "photo.webp"}


MANY = {Kind.TEXT: 2, Kind.AUDIO: 3, Kind.VIDEO: 3}
"""Kinds of which every second or third type is enough: sound and film are measured by a process of their own, too."""


def files() -> dict[str, bytes]:
    """One sample of each type; of images and documents those that are named."""
    types: dict[str, tuple[str, bytes]] = {}
    kinds: dict[Kind, list[str]] = {kind: [] for kind in Kind}
    for each in SAMPLES:
        named = each.name in TAKEN_APART | UNTOUCHED
        if each.mime not in types and (named or each.kind not in (Kind.IMAGE, Kind.DOCUMENT)):
            types[each.mime] = (each.name, each.data)
            kinds[each.kind].append(each.name)
    rest = {name for kind, names in kinds.items() for name in names[:: MANY.get(kind, 1)]} | TAKEN_APART
    return {name: data for name, data in types.values() if name in rest} | MADE


FILES = files()


@dataclass(frozen=True)
class Place:
    """A service of one reader: where the default route leads."""

    protocol: str
    reader: str

    @property
    def service(self) -> str:
        return f"{self.protocol}-{self.reader.replace('+', '-')}"

    def lead_here(self) -> None:
        """The default route has this one candidate, with parameters of its own."""
        TaskRoute.objects.filter(task_type="default").update(temperature=0.3, max_tokens=77)
        route = TaskRoute.objects.get(task_type="default")
        route.candidates.filter(position__gt=1).delete()
        route.candidates.update(provider=Provider.objects.get(name=f"lab-{self.protocol}"), model=self.service)
        snapshot.refresh()


@dataclass
class Stored:
    """A file of the text agent's, and the payloads that the API previews, by service."""

    name: str
    data: bytes
    row: Artifact
    payloads: Mapping[str, Any] = field(default_factory=dict)
    only_converted: frozenset[str] = frozenset()
    """Services that get all of it in another form."""
    native: frozenset[str] = frozenset()

    def arrives_inline(self, body: bytes, place: Place) -> bytes:
        """What arrives for the same file inside a request, by what arrives for the reference.

        An image or a scan that is there whole in another form is not stored for that, so its lead names no reference.
        """
        return REFERENCE.sub(b"", body) if place.service in self.only_converted else body

    def reference(self) -> dict[str, Any]:
        if self.row.kind == Kind.IMAGE:
            return {"type": "image_url", "image_url": {"url": self.row.ref}}
        return {"type": "file", "file": {"file_id": self.row.ref}}

    def inline(self, place: Place) -> dict[str, Any]:
        """The file itself as a part; an image that arrives as it is needs no name and goes as an `image_url`."""
        url = f"data:{self.row.mime_type};base64,{base64.b64encode(self.data).decode()}"
        if self.row.kind == Kind.IMAGE and place.service in self.native:
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": self.name, "file_data": url}}


def compact(value: Any) -> bytes:
    """JSON as it stands on the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def put_back(shown: Any, sent: Any, data: bytes) -> Any:
    """The payload with the data that arrived where it says how many bytes there are: the file's, or another image."""
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
        return [put_back(one, other, data) for one, other in zip(shown, sent, strict=True)]
    return shown


def payloads_on_page(admin: Client, artifact: str, places: Sequence[Place]) -> dict[str, bytes]:
    """What the page of an artifact shows of each service when its card is opened, as it would stand on the wire."""
    opened = {"fragment": "card"}
    cards = [admin.get(f"/artifacts/{artifact}/", {"service": each.service, **opened}) for each in places]
    text = "".join(card.content.decode() for card in cards)
    return {name: compact(json.loads(html.unescape(TAG.sub("", shown)))) for name, shown in SHOWN.findall(text)}


async def send(key: str, parts: Sequence[Mapping[str, Any]], lab: Lab) -> list[bytes]:
    """The body that arrived for a call of `auto` with each part, in order."""
    arrived = []
    for part in parts:
        body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": [part]}]}).encode()
        call = await Call([body], headers(key, len(body))).run()
        assert call.status == 200, call.answer
        arrived.append(lab.requests.pop().body)
    await process_upstream().close()
    return arrived


@pytest.fixture(params=PROTOCOLS)
def places(request: pytest.FixtureRequest, demo: None, lab: Lab) -> list[Place]:
    """Five services at one provider of the lab, in place of the demo's."""
    protocol = request.param
    Service.objects.update(enabled=False)
    provider = Provider.objects.create(
        name=f"lab-{protocol}", protocol=protocol, endpoint=lab.url(protocol), default_model="m", key_source="none"
    )
    made = [Place(protocol, reader) for reader in READERS]
    for each in made:
        service = Service.objects.create(
            service_id=each.service, name=each.service, provider=provider, model=each.service
        )
        for at, name in enumerate(READERS[each.reader].input):
            ServiceCapability.objects.create(service=service, side="input", name=name, position=at)
        ServiceCapability.objects.create(service=service, side="output", name="text")
    return made


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture
def artifacts(places: list[Place], text_agent: AgentProgram) -> list[Stored]:
    """Every file, stored and previewed."""
    places[0].lead_here()
    found = []
    for name, data in FILES.items():
        row = store_bytes(SYSTEM, data, owner="text-agent", filename=name)
        shown = text_agent.get(f"/artifacts/{row.ref}/preview").json()["deliveries"]
        whole = {each["serviceId"] for each in shown if (each["outcome"], each["shown"]) == ("converted", "converted")}
        payloads = {each["serviceId"]: each["payload"] for each in shown}
        native = {each["serviceId"] for each in shown if each["outcome"] == "native"}
        found.append(Stored(name, data, row, payloads, frozenset(whole), frozenset(native)))
    return found


def test_page_preview_simulation_and_wire_say_the_same_of_every_file(
    artifacts: list[Stored], places: list[Place], text_agent: AgentProgram, admin: Client, lab: Lab
) -> None:
    """Whole payloads for five readers, as a reference and inside the request."""
    assert len(artifacts) >= 150
    for each in artifacts:
        on_page = payloads_on_page(admin, each.row.pk, places)
        assert on_page == {place.service: compact(each.payloads[place.service]) for place in places}, each.name
    for place in places:
        place.lead_here()
        route = snapshot.current().configuration.route("default")
        assert route is not None
        for each in artifacts:
            chat = request_for(open_artifact(each.row))
            simulated = simulate(snapshot.current(), route, chat, agent="text-agent").stops[0].payload
            assert compact(simulated) == compact(each.payloads[place.service]), (each.name, place)
        arrived = asyncio.run(send(text_agent.key, [each.reference() for each in artifacts], lab))
        for each, body in zip(artifacts, arrived, strict=True):
            assert DIRECTIVE in body.decode()
            shown = put_back(each.payloads[place.service], json.loads(body), each.data)
            assert compact(shown) == body, (each.name, place)
        one_reader = place.reader == "everything"
        inline = [each for each in artifacts if one_reader or each.name not in TAKEN_APART]
        bodies = {each.name: body for each, body in zip(artifacts, arrived, strict=True)}
        again = asyncio.run(send(text_agent.key, [each.inline(place) for each in inline], lab))
        for each, body in zip(inline, again, strict=True):
            assert body == each.arrives_inline(bodies[each.name], place), (each.name, place)
