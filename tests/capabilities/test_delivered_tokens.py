"""A file's cost in tokens depends on how it was delivered."""

from __future__ import annotations

from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import decide
from capabilities.core.delivery.reader import Reader
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.tokens import estimate_delivery, file_tokens
from capabilities.core.message import FilePart
from capabilities.core.vocabulary import Capabilities, Kind


def test_file_delivered_as_text_costs_the_tokens_of_its_text() -> None:
    """Four characters are estimated as one token. An image of the same file costs more."""
    picture = FilePart(Kind.IMAGE, "image/png", "a.png", 44, "id", width=1024, height=1024)
    decided = decide(picture, Reader(slots_for("openai"), Capabilities(("text",))))
    described = PartDelivery(0, 0, picture, decided, text="a picture of a cat. ")
    estimate, native = estimate_delivery(described, "gpt-4o"), file_tokens("gpt-4o", picture)
    assert estimate is not None
    assert native is not None
    assert (estimate.tokens, native.tokens > 5) == (5, True)
