"""Probing a model service from its page: results are marked as probed, and declared capabilities are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.core.message import ChatRequest, NativePart
from capabilities.core.vocabulary import Capabilities
from capabilities.models import ProbeTranscript, Provider, Service
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.services.actions import save_service
from routing_admin.dispatch import provider_checks as dial
from routing_admin.dispatch.provider_checks import CheckResult
from routing_admin.models import Revision
from tests.console.page import Page
from tests.lab.reading_model import word_in
from tests.lab.received_requests import Media

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


Script = Mapping[str, str | CheckResult | None]
"""Maps MIME types to the text of an answer, to another result, or to None if the model reads the file.

The key `text` means the plain text call.
"""


class ScriptedChecker:
    """A provider checker with scripted results. `received_types` lists the MIME types of the files received."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.received_types: list[str] = []

    def test(self, provider: str, model: str) -> CheckResult:
        answer = self.script.get("text")
        return answer if isinstance(answer, CheckResult) else CheckResult(ms=12, text="Hello")

    def ask_each(self, provider: str, model: str, chats: Sequence[ChatRequest]) -> list[CheckResult]:
        return [self.answer(chat) for chat in chats]

    def answer(self, chat: ChatRequest) -> CheckResult:
        file = chat.messages[0].parts[1]
        assert isinstance(file, NativePart)
        assert file.blob is not None
        self.received_types.append(file.mime_type)
        answer = self.script[file.mime_type]
        if isinstance(answer, CheckResult):
            return answer
        word = word_in(Media("", data=b"".join(file.blob.blocks()))) or "NONE"
        return CheckResult(ms=90, text=word if answer is None else answer, prompt_tokens=300, completion_tokens=4)

    def models(self, provider: str) -> CheckResult:
        return CheckResult(ms=0)


@pytest.fixture
def admin(demo: None, admin: Client) -> Iterator[Client]:
    real = dial.provider_checker
    yield admin
    dial.provider_checker = real


def unknown_service() -> Service:
    """A service with unknown capabilities at a provider whose protocol accepts every kind of file."""
    provider = Provider(name="gem", protocol="gemini", endpoint="https://gem.example/v1beta", default_model="x-1")
    provider.key_source = "none"
    save_provider(SYSTEM, provider)
    row = Service(service_id="new", name="new", provider=provider, model="x-1", declares_capabilities=False)
    save_service(SYSTEM, row)
    return row


VISION_SCRIPT: Script = {
    "image/png": None,
    "audio/wav": CheckResult(ms=90, fault="http_400", status=400, message="audio is not supported"),
    "video/mp4": "NONE. I cannot see any video.",
    "application/pdf": CheckResult(ms=200, fault="http_429", status=429, message="slow down"),
}


def test_probe_results_are_stored_with_the_source_probed(admin: Client) -> None:
    unknown_service()
    scripted = ScriptedChecker(VISION_SCRIPT)
    dial.provider_checker = lambda: scripted
    before = Revision.objects.count()
    answer = admin.post("/probe/new/")
    cells = {cell.name: cell for cell in Service.objects.get(service_id="new").capabilities.filter(side="input")}
    assert (cells["vision"].supported, cells["vision"].source) == (True, "probed")
    assert (cells["audio"].supported, cells["audio"].source) == (False, "probed")
    assert cells["text"].source == "probed"
    assert (cells["video"].supported, cells["video"].source) == (False, "probed")
    assert "file" not in cells
    assert Revision.objects.count() == before + 1
    page = Page(admin.get(answer["Location"]))
    assert page.shows("new reads: text, vision")
    assert page.shows("unclear, left unchanged: file")
    assert page.button("Undo")


def test_service_page_shows_questions_and_answers_of_a_probe(admin: Client) -> None:
    unknown_service()
    scripted = ScriptedChecker(VISION_SCRIPT)
    dial.provider_checker = lambda: scripted
    admin.post("/probe/new/")
    probes = Page(admin.get("/services/new/")).region("Probes")
    vision = ProbeTranscript.objects.get(capability="vision")
    words = [exchange["word"] for exchange in vision.exchanges]
    assert len(set(words)) == 3
    assert words[2] == ""
    assert all(probes.shows(word) for word in words[:2])
    for sentence in (
        "Which word is written in this image?",
        "It named exactly what both files contain, and found nothing in the empty one.",
        "912 tokens in total, as counted by the provider.",
        "The request was refused once it contained such a file.",
        "status 400 · audio is not supported",
        "NONE. I cannot see any video.",
        "A call failed for another reason.",
    ):
        assert probes.shows(sentence)


def test_unclear_probe_keeps_the_earlier_result(admin: Client) -> None:
    unknown_service()
    for answer in (None, "Yes, I can see it.", None):
        scripted = ScriptedChecker({**VISION_SCRIPT, "image/png": answer})
        dial.provider_checker = lambda checker=scripted: checker
        admin.post("/probe/new/")
        cell = Service.objects.get(service_id="new").capabilities.get(side="input", name="vision")
        assert (cell.supported, cell.source) == (True, "probed")
        outcomes = ProbeTranscript.objects.filter(capability="vision").values_list("outcome", flat=True)
        assert set(outcomes) == ({"yes"} if answer is None else {"yes", "unclear"})


def test_probe_keeps_a_declared_capability_and_shows_the_difference(admin: Client) -> None:
    row = unknown_service()
    save_service(SYSTEM, row, capabilities=Capabilities(("text",), ("text",)))
    scripted = ScriptedChecker(VISION_SCRIPT)
    dial.provider_checker = lambda: scripted
    before = Revision.objects.count()
    answer = admin.post("/probe/new/")
    assert Revision.objects.count() == before
    assert Page(admin.get(answer["Location"])).shows("declared otherwise, kept: vision")


def test_probe_sends_no_file_if_the_plain_call_fails(admin: Client) -> None:
    unknown_service()
    model = ScriptedChecker({"text": CheckResult(ms=40, fault="http_401", status=401, message="invalid key")})
    dial.provider_checker = lambda: model
    page = Page(admin.post("/probe/new/"))
    assert model.received_types == []
    assert "The key was refused. Store a valid one." in page.alert
    assert not Service.objects.get(service_id="new").declares_capabilities


def test_content_kinds_unsupported_by_the_protocol_are_not_probed(admin: Client) -> None:
    """A probe sends no audio to Anthropic, because its protocol has none."""
    row = unknown_service()
    row.provider = Provider.objects.get(name="anthropic")
    save_service(SYSTEM, row)
    model = ScriptedChecker({**VISION_SCRIPT, "application/pdf": None})
    dial.provider_checker = lambda: model
    admin.post("/probe/new/")
    # For each type, two files contain a word and one contains none.
    assert model.received_types == ["image/png", "application/pdf"] * 3


def test_viewer_cannot_probe_a_service(demo: None, viewer: Client) -> None:
    """Probing costs money and changes capabilities, so a viewer gets 403."""
    assert viewer.post("/probe/vision-model/").status_code == 403
