"""If a candidate refused a file, it may be called again as if it lacked the capability that the file requires."""

from __future__ import annotations

import pytest

from capabilities.core.delivery.decision import Reader
from capabilities.core.delivery.model_endpoint import ALL_CAPABILITIES, withhold
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.vocabulary import Capabilities


@pytest.mark.parametrize(
    ("withheld", "expected"),
    [
        ((), ("text", "vision", "file")),
        (("vision",), ("text", "file")),
        (("text",), ("text", "vision", "file")),
        ((ALL_CAPABILITIES,), ("text",)),
    ],
)
def test_withholding_removes_only_listed_capabilities_and_never_text(
    withheld: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    reader = Reader(slots_for("openai"), Capabilities(("text", "vision", "file"), ("text",)))
    assert withhold(reader, withheld).capabilities == Capabilities(expected, ("text",))
