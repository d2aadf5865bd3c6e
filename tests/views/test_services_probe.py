"""Probing a model service from its page: the answer is recorded as probed, an administrator's word stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from capabilities import actions
from capabilities.acts import SYSTEM
from capabilities.core.message import ChatRequest, NativePart
from capabilities.core.vocabulary import Capabilities
from capabilities.models import Provider, Service
from capabilities.ports import DialAnswer, ports
from routing_admin.models import Revision
from tests.views.visits import text_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


class ScriptedDial:
    """Answers by the type of the file in the question; the key `text` is the greeting."""

    def __init__(self, script: dict[str, DialAnswer]) -> None:
        self.script = script
        self.asked: list[str] = []

    def test(self, provider: str, model: str) -> DialAnswer:
        """The greeting."""
        return self.script.get("text", DialAnswer(12, text="Hello"))

    def ask(self, provider: str, model: str, chat: ChatRequest) -> DialAnswer:
        """The answer to a probe."""
        file = chat.messages[0].parts[1]
        assert isinstance(file, NativePart)
        self.asked.append(file.mime_type)
        return self.script[file.mime_type]

    def models(self, provider: str) -> DialAnswer:
        """Nobody asks."""
        return DialAnswer(0)


@pytest.fixture
def admin(demo: None, admin: Client) -> Iterator[Client]:
    real = ports.dial
    yield admin
    ports.dial = real


def unknown_service() -> Service:
    """A service at an openai-speaking provider of which nothing is known."""
    row = Service(service_id="new", name="new", provider=Provider.objects.get(name="openai"), model="x-1")
    row.declares_capabilities = False
    actions.save_service(SYSTEM, row)
    return row


SEES = {
    "image/png": DialAnswer(300, text="Red"),
    "audio/wav": DialAnswer(90, "http_400", 400, "audio is not supported"),
    "application/pdf": DialAnswer(200, "http_429", 429, "slow down"),
}


def test_what_the_model_answers_is_recorded_as_probed(admin: Client) -> None:
    """Seen is on, refused is off, both probed; what could not be found out stays unknown; one revision with Undo."""
    unknown_service()
    ports.dial = ScriptedDial(SEES)
    before = Revision.objects.count()
    answer = admin.post("/probe/new/")
    cells = {cell.name: cell for cell in Service.objects.get(service_id="new").capabilities.filter(side="input")}
    assert (cells["vision"].supported, cells["vision"].source) == (True, "probed")
    assert (cells["audio"].supported, cells["audio"].source) == (False, "probed")
    assert cells["text"].source == "probed"
    assert "file" not in cells
    assert Revision.objects.count() == before + 1
    page = text_of(admin.get(answer["Location"]))
    assert "new reads: text, vision" in page
    assert "/undo/" in page


def test_a_declared_cell_stays_and_the_page_says_that_the_model_disagrees(admin: Client) -> None:
    """An administrator's word wins over a probe; nothing is written, and the difference is told."""
    row = unknown_service()
    actions.save_service(SYSTEM, row, capabilities=Capabilities(("text",), ("text",)))
    ports.dial = ScriptedDial(SEES)
    before = Revision.objects.count()
    answer = admin.post("/probe/new/")
    assert Revision.objects.count() == before
    assert "declared otherwise, and kept: vision" in text_of(admin.get(answer["Location"]))


def test_a_provider_that_does_not_answer_is_not_asked_further(admin: Client) -> None:
    """When words alone fail, no file is sent, nothing is recorded, and the page says what to do."""
    unknown_service()
    dial = ScriptedDial({"text": DialAnswer(40, "http_401", 401, "invalid key")})
    ports.dial = dial
    page = text_of(admin.post("/probe/new/"))
    assert dial.asked == []
    assert "The key was refused. Store a valid one." in page
    assert not Service.objects.get(service_id="new").declares_capabilities


def test_a_kind_the_protocol_has_no_place_for_is_not_asked(admin: Client) -> None:
    """Anthropic's protocol takes no audio, so no sound is sent."""
    row = unknown_service()
    row.provider = Provider.objects.get(name="anthropic")
    actions.save_service(SYSTEM, row)
    dial = ScriptedDial({**SEES, "application/pdf": DialAnswer(200, text="pomegranate")})
    ports.dial = dial
    admin.post("/probe/new/")
    assert dial.asked == ["image/png", "application/pdf"]


def test_a_viewer_probes_nothing(demo: None, viewer: Client) -> None:
    """Probing costs money and writes: 403."""
    assert viewer.post("/probe/vision-model/").status_code == 403
