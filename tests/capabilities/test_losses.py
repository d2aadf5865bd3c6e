"""If a file is delivered incompletely, the loss is reported: its kind, the missing share, and a header keyword."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_content import FakeContent

from capabilities.core.delivery.adaptation import PartDelivery, TextStyle, adapt, summary
from capabilities.core.delivery.decision import DeliveryForm, Loss, LossKind, Outcome, measure_loss
from capabilities.core.delivery.reader import Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.message import ChatRequest, Converted, FilePart, Message, Role, Text, make_blob
from capabilities.core.vocabulary import Capabilities, Kind

BMP = FilePart(Kind.IMAGE, "image/bmp", "plan.bmp", 44, "a1", width=400, height=200)
PDF = FilePart(Kind.DOCUMENT, "application/pdf", "report.pdf", 44, "a2")
LOG = FilePart(Kind.TEXT, "text/plain", "long.log", 44, "a3")


def reader(*capabilities: str, policy: str = "extract+convert") -> Reader:
    return Reader(slots_for("openai"), Capabilities(("text", *capabilities)), parse_policies(policy))


def deliver(file: FilePart, candidate: Reader) -> PartDelivery:
    adaptation = adapt(ChatRequest((Message(Role.USER, (file,)),)), candidate, TextStyle("en"))
    return adaptation.deliveries[0]


def test_cut_text_reports_the_missing_share() -> None:
    part = deliver(replace(LOG, content=FakeContent(words="x" * 88_000)), reader())
    assert (part.delivery.outcome, part.delivery.form) == (Outcome.INLINED, DeliveryForm.CUT)
    assert part.delivery.loss == Loss(LossKind.CUT, 0.5)
    assert part.delivery.loss.sentence() == "Cut: 50% is missing."
    assert summary([part, part]) == "text=inlined:cut:2"


def test_complete_text_has_no_loss() -> None:
    part = deliver(replace(LOG, content=FakeContent(words="x" * 44_000)), reader())
    assert (part.delivery.form, part.delivery.loss, summary([part])) == (DeliveryForm.AS_IS, None, "text=inlined")


@pytest.mark.parametrize(("share", "loss"), [(0.25, Loss(LossKind.CUT, 0.75)), (None, Loss(LossKind.CUT)), (1.0, None)])
def test_incomplete_extraction_reports_the_missing_share(share: float | None, loss: Loss | None) -> None:
    class Stopped(FakeContent):
        def text(self) -> Text | None:
            return Text("page one", "pdf", "[truncated]" if loss else "", share)

    part = deliver(replace(PDF, content=Stopped()), reader())
    assert (part.delivery.outcome, part.delivery.loss) == (Outcome.EXTRACTED, loss)
    assert summary([part]) == ("file=extracted:cut" if loss else "file=extracted")


def test_extraction_loss_and_cut_loss_are_combined() -> None:
    class Stopped(FakeContent):
        def text(self) -> Text | None:
            return Text("x" * 88_000, "pdf", "[truncated]", 0.5)

    assert deliver(replace(PDF, content=Stopped()), reader()).delivery.loss == Loss(LossKind.CUT, 0.75)


@pytest.mark.parametrize(("size", "loss"), [((200, 100), Loss(LossKind.SCALED, 0.75)), ((400, 200), None)])
def test_downscaled_image_reports_a_loss_and_converted_image_does_not(size: tuple[int, int], loss: Loss | None) -> None:
    content = FakeContent(image=Converted(make_blob(b"png"), "image/png", *size))
    part = deliver(replace(BMP, content=content), reader("vision"))
    assert (part.delivery.outcome, part.delivery.loss) == (Outcome.CONVERTED, loss)
    assert part.delivery.form is (DeliveryForm.CUT if loss else DeliveryForm.CONVERTED)
    assert summary([part]) == ("image=converted:scaled" if loss else "image=converted")


def test_cropped_image_counts_as_complete() -> None:
    """A HEIC file may store more pixels than are visible."""
    content = FakeContent(image=Converted(make_blob(b"png"), "image/png", 300, 150, 300 * 150))
    assert deliver(replace(BMP, content=content), reader("vision")).delivery.loss is None
    smaller = FakeContent(image=Converted(make_blob(b"png"), "image/png", 150, 75, 300 * 150))
    assert deliver(replace(BMP, content=smaller), reader("vision")).delivery.loss == Loss(LossKind.SCALED, 0.75)


def test_file_with_only_a_byte_order_mark_is_complete() -> None:
    for share, loss in ((1.0, None), (0.5, Loss(LossKind.CUT, 0.5))):

        class Empty(FakeContent):
            def text(self) -> Text | None:
                return Text("", "text", "", share)  # noqa: B023 - delivered within the loop

        assert deliver(replace(LOG, content=Empty()), reader()).delivery.loss == loss


@pytest.mark.parametrize(("arrives", "percent"), [(1, 99), (2000, 99), (999_999, 1), (500_000, 50)])
def test_loss_of_an_incomplete_delivery_is_between_1_and_99_percent(arrives: int, percent: int) -> None:
    """An incomplete delivery contains part of the file, but never all or none of it."""
    loss = measure_loss(LossKind.CUT, arrives, 1_000_000)
    assert loss is not None
    assert loss.percent == percent
