"""Why the model stopped, in Gemini's words."""

from __future__ import annotations

from collections.abc import Mapping

from capabilities.core.protocols.finish import CUT, FILTERED, UNFINISHED, WHOLE, Ending
from capabilities.core.wire import Fault

ENDINGS: Mapping[str, Ending] = {
    "STOP": WHOLE,
    "MAX_TOKENS": CUT,
    "CONTINUATION": CUT,
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
            *("MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ),
        FILTERED,
    ),
    **dict.fromkeys(("OTHER", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED"), UNFINISHED),
}
"""Reasons to stop."""
FAILURES: Mapping[str, Fault] = {
    "MALFORMED_FUNCTION_CALL": Fault.BAD_JSON,
    "UNEXPECTED_TOOL_CALL": Fault.BAD_JSON,
    "MALFORMED_RESPONSE": Fault.GENERATION_FAILED,
    "TOO_MANY_TOOL_CALLS": Fault.GENERATION_FAILED,
    "MISSING_THOUGHT_SIGNATURE": Fault.GENERATION_FAILED,
}
"""Reasons to stop that mean that there is no answer."""
